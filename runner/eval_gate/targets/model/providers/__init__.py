"""Models of all providers behind one chat. Their libraries are imported when one is asked, never before."""
