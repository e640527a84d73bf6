# A TLS connection under the poller: a Socket whose bytes pass through OpenSSL.
#
#     read   recv into the buffer for records -> whole records into OpenSSL's incoming buffer -> SSL_read into the
#            receive buffer -> Lane.take, as for any Socket
#     write  bytes of the outbox -> SSL_write, a record at a time -> OpenSSL's outgoing buffer -> send
#
# OpenSSL is Python's own, by its `ssl` module (SSLObject and MemoryBIO), whose methods are called from compiled code:
# context, certificates, ciphers and versions are Python's. OpenSSL is given whole records only. So it never waits for
# the rest of one, which Python reports by an exception, and its buffers hold one record at most.

from fanlight_broker.net.tcp cimport Socket
from fanlight_broker.wire.inbox cimport ReceiveBuffer

cdef class TlsSocket(Socket):
    cdef:
        object tls                    # the ssl.SSLObject
        object ssl_read, ssl_write    # its methods
        object outgoing               # what OpenSSL has written: the ssl.MemoryBIO
        object feed, drain            # `write` of its incoming MemoryBIO, `read` of its outgoing one
        object memory                 # net.tls_memory.TlsMemory: what its buffers are charged for; None: nothing
        Py_ssize_t largest            # bytes that it was charged for last
        ReceiveBuffer records         # shared: what is received, still encrypted
        bytes unread                  # received and not given to OpenSSL: a part of a record, or more if `behind`;
                                      # None: nothing
        Py_ssize_t given              # records that OpenSSL was given and that were not read from it
        bytes plain                   # written and not encrypted yet, from `plain_at` on; None: nothing
        Py_ssize_t plain_at
        bint behind                   # `unread` or OpenSSL have what can be read without the socket
        bint late                     # this turn is over
        bint over                     # the peer has sent close_notify
        bint ending                   # close_notify is sent when everything is out; what comes is thrown away
        bint notified                 # it is sent, or in `rest`
        bint half                     # then the end of our half of the stream

    cdef int take(self, const unsigned char* data, Py_ssize_t size, double now) except -1
    cdef Py_ssize_t decrypt(self, const unsigned char* data, Py_ssize_t size, Py_ssize_t* at) except -1
    cdef Py_ssize_t read_record(self, Py_ssize_t room) except -1
    cdef int keep(self, const unsigned char* data, Py_ssize_t size) except -1
    cdef int encrypt(self) except -1
    cdef int send_answer(self) except -1
    cdef int notify(self) except -1
    cdef int charge(self, Py_ssize_t size) except -1
    cdef int end(self) except -1
