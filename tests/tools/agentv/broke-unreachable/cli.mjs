await fetch("http://127.0.0.1:9999/chat"); // nobody is there
