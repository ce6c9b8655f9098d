#!/bin/sh
# limit.sh SECONDS COMMAND...: one of the pieces of a part, with a time limit,
# so that one that hangs leaves time to the others.  It kills its children when
# it ends or is stopped.
timeout -k 5 "$@" &
trap 'kill $!' TERM
wait $!
