# SUBSCRIBE and UNSUBSCRIBE as most are, with no options but the syntax:
#
#   [6, request or nil, subscription, filter]                     [8, request or nil, subscription]
#   [6, request or nil, subscription, filter, {"syntax": 1}]
#
# All others are for the codec, and whatever is wrong with one too.
