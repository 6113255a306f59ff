"""Results as people read them. `view` turns a run into numbers and words once; the rest only places them."""
