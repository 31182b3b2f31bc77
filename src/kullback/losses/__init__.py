"""A number to differentiate, with the gradient that it claims."""
