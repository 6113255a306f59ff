"""An HTTP agent as a target."""
