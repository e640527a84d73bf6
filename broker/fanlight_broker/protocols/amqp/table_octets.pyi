# For compiled code alone: it gives Python nothing.
