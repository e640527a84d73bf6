"""`make demo`: a broker, real stock prices through it, and subscribers at work."""
