#!/bin/sh
# losses.sh NAME: a model's losses are those of the same network in PyTorch.
#
# golden/losses/NAME.losses says how to build and run the trainer, and holds the
# loss of each step in double (tests/pytorch makes it).  Where every step has
# the same batch, the loss must fall.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

golden=$SINTER_SOURCE/tests/golden/losses/$1.losses
build=$(sed -n 's/^# build: //p' "$golden")
run=$(sed -n 's/^# run: //p' "$golden")

# Settings hold blanks: what begins with two dashes is an option.
set -f
IFS='
'
# shellcheck disable=SC2046 # split at lines on purpose
expect 0 "$SINTER" build "$models/$1.net" -o trainer \
    $(echo "$build" | sed 's/ --/\n--/g')
# shellcheck disable=SC2046
expect 0 ./trainer --device=host --quiet --log-every=1 --metrics=rows \
    $(echo "$run" | sed 's/ --/\n--/g')

grep '"split":"step"' rows | sed 's/.*"loss":\([^,]*\),.*/\1/' >found
grep -v '^#' "$golden" >right
paste found right | awk -v repeated="$(grep -c '^# the same batch' "$golden")" '
    {
        d = $1 / $2 - 1
        if ($1 + 0 != $1 || d > 1e-3 || d < -1e-3) {
            printf "step %d: the loss is %s, should be %s\n", NR, $1, $2
            bad = 1
        }
    }
    NR == 1 { first = $1 }
    END {
        if (repeated && !($1 < first)) {
            printf "the loss does not fall: %s to %s\n", first, $1
            bad = 1
        }
        exit bad || NR != 20
    }' || fail "$1 does not train as in PyTorch"
