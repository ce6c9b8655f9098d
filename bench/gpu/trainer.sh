# shellcheck shell=sh
# Sourced by the parts: builds trainers, and times their steps.

SINTER=$BUILD/bin/sinter
# shellcheck disable=SC2034 # for the parts
MODELS='airbench94 resnet9' EPOCHS=3 # airbench94 freezes a bias after three
# shellcheck disable=SC2034
[ -z "$SMALL" ] || MODELS=lenet EPOCHS=2

batch_of() {
    if [ -n "$SMALL" ]; then
        echo 2
    else
        sed -n 's/^ *batch *= *\([0-9]*\).*/\1/p' "$ROOT/models/$1.net"
    fi
}

# build TRAINER MODEL OPTION...: or reuses that of another part.
build() {
    trainer=$1 model=$2
    shift 2
    kept=$WORK/built/$(echo "$model $*" | tr ' /' '__')
    mkdir -p "$WORK/built"
    [ -x "$kept" ] ||
        "$SINTER" build "$ROOT/models/$model.net" "$@" \
            --set batch="$(batch_of "$model")" -o "$kept" || return
    ln -sf "$kept" "$trainer"
}

# build_narrow: a convolutional model with all features and an attention model,
# small enough for negligible steps; their names in NARROW.
build_narrow() {
    NARROW=lenet
    [ -z "$SMALL" ] || { build lenet lenet && return; }
    NARROW='resnet9 gpt_nano'
    "$SINTER" build "$ROOT/models/resnet9.net" --set width=8 --set batch=4 \
        -o resnet9 || return
    "$SINTER" build "$ROOT/models/gpt_nano.net" --set batch=2 \
        --set 'layers=[1]' \
        --set 'data=synthetic(vocabulary=65, shape=[8])' -o gpt_nano
}

# data_of MODEL: CIFAR-10 if present and suitable, else synthetic data.
data_of() {
    case $1 in
    resnet9* | airbench*) [ -z "$DATA" ] || { echo "$DATA" && return; } ;;
    esac
    batches=40
    [ "$1" != gpt_nano ] || batches=1000
    [ -z "$SMALL" ] || batches=4
    echo "synthetic:$((batches * $(batch_of "$1")))"
}

# train TRAINER MODEL OPTION...: on the GPU, with rows in the file metrics.
train() {
    trainer=$1 model=$2
    shift 2
    rm -rf run metrics
    "./$trainer" --device="$DEVICE" --data="$(data_of "$model")" \
        --metrics=metrics --out=run "$@"
}

# tuned TRAINER MODEL: --tune, unless a part has done so since the cache was
# emptied.
tuned() {
    mark=$XDG_CACHE_HOME/sinter/$2.tuned
    [ -e "$mark" ] || { train "$1" "$2" --tune && : >"$mark"; }
}

# speeds: of all epochs but the first, which loads and records, in samples/s.
speeds() {
    sed -n 's/.*"split":"train".*"samples_per_second":\([^,}]*\).*/\1/p' \
        metrics | tail -n +2
}

# step_ms TRAINER MODEL OPTION...: milliseconds of a step, the median of epochs.
step_ms() {
    model=$2
    train "$@" --epochs="$EPOCHS" --quiet >&2 || return
    speed=$(speeds | median) || {
        echo "no epochs in metrics of $*" >&2
        return 1
    }
    ratio "$((1000 * $(batch_of "$model")))" "$speed"
}

# against MODEL NAME A NAME B: alternates steps of two trainers with options A
# and B; rows of the medians and of their ratio.
against() {
    model=$1 name_a=$2 words_a=$3 name_b=$4 words_b=$5
    : >a.ms
    : >b.ms
    for _ in 1 2 3; do
        # shellcheck disable=SC2086 # words
        set -- $words_a
        trainer=$1
        shift
        step_ms "$trainer" "$model" "$@" >>a.ms && echo >>a.ms || return
        # shellcheck disable=SC2086 # words
        set -- $words_b
        trainer=$1
        shift
        step_ms "$trainer" "$model" "$@" >>b.ms && echo >>b.ms || return
        [ -z "$SMALL" ] || break
    done
    a=$(median <a.ms) b=$(median <b.ms)
    row "$model: $name_a" "$a" ms "$(paste -sd ' ' a.ms)"
    row "$model: $name_b" "$b" ms "$(paste -sd ' ' b.ms)"
    row "$model: $name_a / $name_b" "$(ratio "$a" "$b")"
}
