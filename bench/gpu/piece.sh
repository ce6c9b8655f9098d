#!/bin/sh
# piece.sh SECONDS COMMAND...: one of the pieces of a part, for so long at most,
# so that one that hangs leaves time to the others.  It ends with all that it has
# begun, also where the part is ended before.
timeout -k 5 "$@" &
trap 'kill $!' TERM
wait $!
