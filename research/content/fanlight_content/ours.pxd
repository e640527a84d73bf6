# matchcore's screens behind the contenders' interface.

from fanlight_content.contender cimport Contender
from matchcore.screen cimport Screen


cdef class Ours(Contender):
    cdef:
        Screen screen
