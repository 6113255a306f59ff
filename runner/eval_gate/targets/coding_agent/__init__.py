"""What targets share that start a program which reads and writes files itself."""
