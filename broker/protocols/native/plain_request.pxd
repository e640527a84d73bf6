# SUBSCRIBE and UNSUBSCRIBE as most are, without options:
#
#   [6, request or nil, subscription, filter]      [8, request or nil, subscription]
#
# All others are for the codec, and whatever is wrong with one too.
