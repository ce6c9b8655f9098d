#!/bin/sh
# run.sh SINTER DIR [MODEL...]: short trainings of the models, in a few minutes.
#
# Builds a trainer of each model, or of the named ones, with its settings in
# `runs`, trains it on one thread of the host from seed 0, and prints its
# result.  DIR has the binary files of CIFAR-10; `data.py` converts them for
# some models.
set -eu

here=$(CDPATH='' cd "$(dirname "$0")" && pwd)

if [ $# -lt 2 ]; then
    sed -n '2s/^# //p' "$0" >&2
    exit 2
fi
sinter=$1 cifar10=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The path of DATA for the trainer.
place() {
    case $1 in
    cifar10) echo "$cifar10" ;;
    *)
        "$here/data.py" "$1" "$cifar10" "$work/$1" >&2
        echo "$work/$1"
        ;;
    esac
}

# train MODEL DATA SETTINGS
train() (
    model=$1 data=$(place "$2") settings=$3
    set -f --
    IFS=';'
    for setting in $settings; do
        set -- "$@" "--set=${setting# }"
    done
    "$sinter" build "$here/../../models/$model.net" "$@" -o "$work/$model" \
        2>"$work/output" || { cat "$work/output" >&2; exit 1; }
    "$work/$model" --data "$data" --out "$work/$model.run" --threads 1 \
        --seed 0 --quiet >"$work/output"
    echo "$model: $(sed -n 's/^test //p' "$work/output" | tail -n 1)"
)

while IFS='|' read -r model data settings; do
    model=${model% } data=${data# } settings=${settings# }
    case " ${*:-$model} " in
    *" $model "*) train "$model" "${data% }" "$settings" </dev/null ;;
    esac
done <"$here/runs"
