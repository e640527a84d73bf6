# The compiled half of an AMQP connection: finds the frames in what arrived. What they say is for Python.
#
#   Inbox.data   [ AMQP 0 0 9 1 ][ METHOD ][ HEADER ][ BODY ][ BODY ][ HEARTBEAT ][ MET..
#                  |               |         '---------+------ content: PUBLISH for the loop, so that the last frame of
#                  |               |                           a message stays at hand while the message is held back
#                  |               '-------------------------- FRAME
#                  '------------------------------------------ FRAME, while `greeted` is False
#
# It is the sender of the messages that Python makes of the contents: `offer`, then `forward` by Publishing.

cimport cython

from fanlight_broker.wire.lane cimport Lane

@cython.final
cdef class AmqpLane(Lane):
    cdef:
        public bint greeted               # the protocol header has come: what follows are frames
        readonly int kind                 # of the frame at hand: its type
        readonly int channel              # and its channel
