from typing import final

@final
class RecordReader: ...
