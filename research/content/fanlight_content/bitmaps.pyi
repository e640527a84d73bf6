from fanlight_content.contender import Contender

class Bitmap(Contender):
    """Rows for values; ranges are left to the program."""

class RangeBitmap(Bitmap):
    """And rows for cells of numbers."""

class CountingBitmap(Bitmap):
    """Rows for values and cells, which are counted in bit slices."""
