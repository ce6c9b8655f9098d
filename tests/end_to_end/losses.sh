#!/bin/sh
# losses.sh NAME: a model's losses are those of the same network in PyTorch.
#
# golden/losses/NAME.losses says how to build and run the trainer, and holds the
# loss of each step in double (tests/pytorch makes it), and the loss and accuracy
# of the evaluation after the last.  NAME is a model's, for which every step has
# the same batch, so that the loss must fall; or that and a dash and more, for
# the model in another setting.  Models of this folder are trained on files that
# tests/pytorch/scenes.py writes.  Prints the largest relative difference.
# EMULATOR is a program that runs a trainer for another processor.
# Models of most kinds of kernels are compiled with the users' flags, others that
# compute for seconds with the tests', and the rest by tcc.
tiny=
case $1 in
airbench94 | gpt_nano | gru_text | resnet9 | unet_seg) OPTIMISATION= ;;
resnet9-wide | resnet9_tricks) ;;
*) tiny=tiny ;;
esac
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
[ -z "$tiny" ] || . "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

model=${1%%-*}
golden=$SINTER_SOURCE/tests/golden/losses/$1.losses
[ -f "$golden" ] || fail "PyTorch has not been asked about $1"
build=$(sed -n 's/^# build: //p' "$golden")
run=$(sed -n 's/^# run: //p' "$golden")
right=$(sed -n 's/^# evaluation: //p' "$golden")
scenes=$(sed -n 's/^# scenes: //p' "$golden")
repeated=$(grep -c '^# the same batch' "$golden")
if [ -n "$scenes" ]; then
    models=$here
    run=--data=scenes
    python=
    for candidate in /usr/bin/python3 python3; do
        $candidate -c 'import numpy' 2>/dev/null && python=$candidate && break
    done
    [ -n "$python" ] || exit 77
    # shellcheck disable=SC2086 # a kind and two numbers
    expect 0 "$python" "$SINTER_SOURCE/tests/pytorch/scenes.py" scenes $scenes
fi
[ "$repeated" = 1 ] || [ "$model" != "$1" ] ||
    fail "$1 is not judged on a repeated batch"

# train OPTION...: builds the trainer with more options, and runs it.  Settings
# contain blanks; an option begins with two dashes.
set -f
train() {
    old=$IFS
    IFS='
'
    # shellcheck disable=SC2046 # split at lines on purpose
    expect 0 "$SINTER" build "$models/$model.net" -o trainer \
        $(echo "$build" | sed 's/ --/\n--/g') "$@"
    # shellcheck disable=SC2046
    expect 0 "${EMULATOR:-env}" ./trainer --device=host --quiet --log-every=1 \
        --metrics=rows $(echo "$run" | sed 's/ --/\n--/g')
    IFS=$old
}

# judge NAME: compares the rows.
judge() {
    grep '"split":"step"' rows | sed 's/.*"loss":\([^,]*\),.*/\1/' >found
    grep -v '^#' "$golden" >steps
    paste found steps | awk -v repeated="$repeated" '
        {
            d = $1 / $2 - 1
            if ($1 + 0 != $1 || d > 1e-3 || d < -1e-3) {
                printf "step %d: the loss is %s, should be %s\n", NR, $1, $2
                bad = 1
            }
            most = d > most ? d : -d > most ? -d : most
        }
        NR == 1 { first = $1 }
        END {
            printf "losses differ by at most %.1e\n", most
            if (repeated && !($1 < first)) {
                printf "the loss does not fall: %s to %s\n", first, $1
                bad = 1
            }
            exit bad || NR != 20
        }' || fail "$1 does not train as in PyTorch"

    # As ties are broken, the share that is right is between two numbers; targets
    # have none.
    grep '"split":"test"' rows | tail -n 1 |
        sed -e 's/.*"loss":\([^,]*\),.*"accuracy":\([^,}]*\).*/\1 \2/' \
            -e 's/ null$//' >evaluation
    # shellcheck disable=SC2086 # three numbers
    printf '%s %s\n' "$(cat evaluation)" "$right" | awk '
        {
            loss = NF == 2 ? $2 : $3
            d = $1 / loss - 1
            exit !($1 + 0 == $1 && d < 1e-3 && d > -1e-3 &&
                   (NF == 2 ||
                    (NF == 5 && $2 >= $4 - 1e-5 && $2 <= $5 + 1e-5)))
        }' || fail "evaluated: $(cat evaluation); right is $right"
}

train
judge "$1"
# Batches of an update, each in shards.
if [ "$1" = mlp-gathered ]; then
    train --set shards=4
    judge "$1"
fi
