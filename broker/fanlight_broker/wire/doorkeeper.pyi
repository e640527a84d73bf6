from typing import final

@final
class Doorkeeper: ...
