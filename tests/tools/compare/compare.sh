#!/bin/sh
# shellcheck disable=SC2154 # here and work are of expect.sh
# sinter compare: finds nothing wrong with what is right, and a mistake that the
# C compiler is made to make in one of the two trainers where it is.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
tiny=$here/tiny.net

. "$SINTER_SOURCE/tests/tools/compare/faulty.sh"

compare() {
    want=$1
    shift
    expect "$want" "$SINTER" compare --steps=2 "$@"
}

# A sum's low word, the rounding of the rest, depends on oneDNN's version.
compare 0 "$tiny"
expect_says "as close to the reference as b, .*0 wrong;"
expect_says "^step 2 "
expect_says "  sum, tiny.net:[0-9]*  f32\[\]$"
expect_says "second.conv_1.weight  f32\[16,3,3,8\]  gradient"
expect_says "first.batch_norm_1.bias  f32\[8\]  gradient"
expect_says "second.conv_1.weight.momentum  f32\[16,3,3,8\]  optimizer"

# A batch that must be full is reduced to one that divides it.
compare 0 "$SINTER_SOURCE/tests/tools/moved.net" --set batch=200 --steps=1
expect_says "batch 25 (reduced from 200"

# In 16 bits, on both sides and on one.
half="--set precision=f16 --act=recipe"
compare 0 "$here/micro.net" -a "$half" -b "-O0 $half"
expect_says "as close to the reference as b, 0 wrong;"
expect_says "matmul of hidden  f16\[16,8\]"
compare 0 "$here/micro.net" -a "$half" -b "--set precision=f16"
expect_says "matmul of hidden  f16\[16,8\]"
expect_says "^carried .*matmul of hidden"

# The momentum of the fused update, and a relu that leaves 1 in place of 0.
FAULT='s/0\.9f/0.8f/' compare 7 "$tiny" --json
expect_says '"double": true'
python3 "$SINTER_SOURCE/tests/tools/schema.py" "$SINTER_SOURCE/docs/compare.schema.json" out ||
    fail "docs/compare.schema.json"
expect_says '"tensor": "linear_1.bias.momentum", .*"verdict": "wrong"'
expect_says '"tensor": "conv of first.conv_1", .*"verdict": "same"'
FAULT='s/< 0 ? 0 :/< 0 ? 1 :/' compare 7 "$tiny" --no-eval
expect_says "first wrong tensor: %.*, relu of first.relu_1.*, tiny.net:4"
expect_says "no reference in double"

# The first of four shards.
compare 0 "$tiny" --set shards=4
expect_says "batch 64"
expect_says "as close to the reference as b, .*0 wrong;"
expect_says "second.conv_1.weight.shard  f32\[16,3,3,8\]"
FAULT='s/< 0 ? 0 :/< 0 ? 1 :/' compare 7 "$tiny" --set shards=4
expect_says "first wrong tensor: %.*, relu of first.relu_1.*, tiny.net:4"

# Where both make it, neither is right.
FAULT='s/< 0 ? 0 :/< 0 ? 1 :/' compare 7 "$tiny" -b "--without=bit_packing"
expect_says "error of a .*: replayed alone, its kernel computes a wrong result from its inputs"

# What follows is about numbers, and trainers take ten times as long with
# sanitizers.
[ -z "${SINTER_SANITIZED:-}" ] || exit 0

# A maximum that is off by less than a kernel may be equals none of its numbers,
# so that its gradient is lost: by kernels that are right about what they read.
cat >most.net <<'END'
model Most(row: f32[N, 12, 8]) -> f32[N, 3] {
  row |> linear(16) |> tanh |> max([positions]) |> linear(3)
}

train Most {
  data      = synthetic(samples=64, test=16)
  batch     = 16
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.05, momentum=0.9)
}
END
compare 0 most.net
FAULT='/^KERNEL.*_tanh_max(/,/^}/s/\(out[0-9]*\[k\] = v[0-9]*\[k\]\);/\1 * 1.00001f;/' \
    compare 7 most.net
expect_says "^carried .*max_pool of max_1"
expect_says "^carried .*linear_1.weight .*gradient"
expect_says "^WRONG .*linear_1.weight.momentum"

# Too small, it makes numbers that are none, of which the loss has nothing; the
# state that is left with them is not what roundings make.
cat >gap.net <<'END'
model Gap(row: f32[N, 12, 8]) -> f32[N, 3] {
  x = row |> linear(16) |> tanh
  most = max(x, [positions], keep=true)
  gap = log(1e6 * stop_gradient(most - x) + 1)
  norm = batch_norm(gap, scale=false, bias=false)
  x + where(x > 2, norm, 0) |> mean([positions]) |> linear(3)
}

train Gap {
  data      = synthetic(samples=64, test=16)
  batch     = 16
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.05, momentum=0.9)
}
END
compare 0 gap.net
FAULT='/^BODY.*_tanh_max_body(/,/^}/s/\(out[0-9]*\[k\] = v[0-9]*\[k\]\);/\1 * 0.99999f;/' \
    compare 7 gap.net
expect_says "^carried .*var of batch_norm_1"
expect_says "^WRONG .*batch_norm_1.running_var"

for steps in 0 1000001; do
    for command in compare bench; do
        expect 2 "$SINTER" $command "$tiny" --steps=$steps
        expect_says "^sinter: --steps needs a number from 1 to 1000000, not '$steps'"
    done
done

# A compiler that leaves a server behind is not waited for.
cat >served <<'END'
#!/bin/sh
for _ in $(seq 60); do
    [ -e "$TEXTS/stop" ] && exit
    sleep 1
done >/dev/null 2>&1 && : >"$TEXTS/ended" &
exec "$FAULTY" "$@"
END
chmod +x served
FAULTY=$CC CC=$PWD/served compare 2 "$tiny" -a "--set width=4"
expect_says "cannot share a start state"
: >"$TEXTS/stop"
[ ! -e "$TEXTS/ended" ] || fail "the compiler's server was waited for"

# A step is all of its batches.
compare 0 "$here/micro.net" --set accumulate=3 --json
launches=$("$SINTER" check --json --target=host --set accumulate=3 "$here/micro.net" |
    grep -o '"launches": [0-9]*' | head -n 1)
expect_says "\"a\": {\"options\": \"-O1\", $launches,"

# What is made again is decided for CUDA, so a limit is one of that plan.
compare 5 "$tiny" --memory=1KiB
expect_says "KiB of memory in the plan for cuda, even with rematerialization"

compare 2 "$tiny" -a "--lvel=0"
expect_says "did you mean --level?"
compare 2 "$tiny" -b "--without=simplfy"
expect_says "no pass 'simplfy'; did you mean simplify?"
compare 2 "$tiny" -b "--without=fuse"
expect_says "no plan can be made without this pass"
compare 0 "$tiny" -b "--without=simplify --rewrite-limit=3" --set batch=8 --data=random

# What is interrupted leaves nothing behind: neither while a trainer is compiled,
# nor while one runs.
mkdir interrupted
for sign in tiny.cu b.start; do
    # ccache would leave the compiler behind.
    CC=cc CFLAGS="-O0 -pipe" TMPDIR=$PWD/interrupted "$SINTER" compare "$tiny" >out 2>&1 &
    until ls interrupted/*/$sign >/dev/null 2>&1; do
        kill -0 $! || fail "there is no comparison to interrupt"
        sleep 0.1
    done
    kill $!
    wait $! || true
    for _ in $(seq 100); do
        [ -z "$(ls interrupted)" ] && break
        sleep 0.1
    done
    [ -z "$(ls interrupted)" ] || fail "$(ls -R interrupted)"
done

# Nor does what finds the disk full, which is nobody's mistake: 1 MiB is too
# little for a trainer.
mkdir full
if unshare -rm mount -t tmpfs none full 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands these
    expect 74 unshare -rm sh -c 'mount -t tmpfs -o size=1m none full &&
        TMPDIR=$PWD/full "$1" compare "$2"; status=$?
        ls full; exit $status' sh "$SINTER" "$tiny"
    expect_says "^sinter: .*/full/sinter-.*: No space left on device$"
    [ ! -s out ] || fail "a full disk keeps $(cat out)"
fi

# Numbers that f16 has few digits for or none, and gradients that overflow as the
# loss scale is still too large: the step is skipped.
cat >small.net <<'END'
model Small(row: f32[N, 4]) -> f32[N, 3] {
  row |> linear(8) |> scale(1e-5) |> linear(8, bias=false)
    |> linear(8, bias=false) |> scale(1e5) |> linear(3)
}

train Small {
  data      = synthetic(samples=64, test=16)
  batch     = 8
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=1e-2)
  precision = f16
}
END
compare 0 small.net -a --act=recipe
expect_says "^carried .*  1.00e+00 .*  matmul of linear_2"
expect_says "^skipped .*  linear_2.weight  f16\[8,8\]  gradient"
expect_says "^skipped .*  linear_2.weight  f32\[8,8\]  param"
expect_says "^skipped .*  metric.skipped"
expect_says "^a skips the step because gradients overflow; b takes it$"
compare 0 small.net -a "--act=recipe" -b "-O0 --act=recipe"
expect_says "^skipped   0.00e+00  0.00e+00 .*  linear_2.weight  f16\[8,8\]  gradient"
expect_says "^both skip the step because gradients overflow$"

# What those that waited have overflowed is known before the step, so that the
# model itself means it to be skipped.
for other in -O0 "-O0 --act=recipe"; do
    compare 0 small.net --set accumulate=2 -a --act=recipe -b "$other"
    expect_says "linear_2.weight  f32\[8,8\]  param$"
    expect_says "skips\{0,1\} the step because gradients overflow"
done

# A scale that is not halved, and a step that is skipped without need.
for setting in accumulate=1 accumulate=2; do
    FAULT='s/ \* 0\.5f;/ * 0.4f;/' compare 7 small.net --set $setting -a --act=recipe
    expect_says "^WRONG .*  run.loss_scale"
    FAULT='s/= 0\.5f < \(v[0-9]*;\)/= 1.5f < \1/' compare 7 "$here/micro.net" \
        --set $setting -a "$half" -b "--set precision=f16"
    expect_says "^WRONG .*  metric.skipped"
done

# The step that is looked at may be of a later stage than the first.
sed 's/^  epochs .*/&\n  clip = norm(0.01)\n  freeze "hidden.weight" after 1 step/' \
    "$here/micro.net" >stages.net
compare 0 stages.net
expect_says ", 0 wrong;"

# Averages of every step are part of it, and may be what a parameter becomes.
compare 0 "$here/micro.net" --set "average=lookahead(0.5)"
expect_says ", 0 wrong;"

# Gradients that wait for other batches carry the scale of the loss.
compare 0 "$here/micro.net" --set precision=f16 --set accumulate=3
expect_says ", 0 wrong;"

# A launch is evaluated once, for all that it leaves: that which updates the
# 50 parameters of a deep model has the norm of all gradients before each.
deep() {
    printf 'model Deep(x: f32[N, 128]) -> f32[N, 10] {\n  x\n'
    for i in $(seq 24); do
        echo '    |> linear(128) |> relu'
    done
    cat <<'END'
    |> linear(10)
}

train Deep {
  data      = synthetic()
  batch     = 4
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01, momentum=0.9)
  clip      = norm(1)
}
END
}
deep >deep.net
(
    export FAULT='s/0\.9f/0.8f/'
    ulimit -t 20
    compare 7 deep.net --steps=1
    expect_says "linear_24.weight.momentum"
) || exit 1

# What follows takes as long as all before: networks whose roundings were once
# taken for mistakes.
[ -n "${COMPARE_ALL:-}" ] || exit 0

# The mean of a convolution of numbers whose mean is 0 is what roundings left, in
# double too, so the order that a pass chooses shows in all of its digits.
cat >means.net <<'END'
fn thin(x, c) = x |> conv(c, 1, bias=false) |> batch_norm

model Means(image: u8[N, 8, 8, 3]) -> f32[N, 10] {
  image |> normalize(mean=[128, 128, 128], std=[64, 64, 64])
    |> thin(8) |> thin(96) |> relu |> thin(16) |> thin(96) |> relu
    |> global_avg_pool |> linear(10)
}

train Means {
  data      = synthetic(samples=64, test=16)
  batch     = 8
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.05, momentum=0.9)
}
END
compare 0 means.net
expect_says "batch_norm_2.running_mean  f32\[96\]  statistic"
FAULT='s/0\.9f/0.8f/' compare 7 means.net

# A product of terms that cancel is no more exact than they are: how far off
# depends on the order of its sums, so on the processor's vectors.
cat >cancels.net <<'END'
model Cancels(row: f32[N, 4]) -> f32[N, 3] {
  h = row |> linear(4)
  table = parameter([4, 3], init=normal)
  near = table + 1e-6 * parameter([4, 3], init=normal)
  concat([h, 0 - h]) @ concat([table, near], axis=0) |> scale(1e6)
}

train Cancels {
  data      = synthetic(samples=64, test=16)
  batch     = 8
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=1e-8)
}
END
compare 0 cancels.net
expect_says "^good .*e-02  matmul of matmul_1"

# Where terms cancel inside a kernel, one rounding to nearest says little of what
# a sum of six has left.
cat >centred.net <<'END'
model Centred(word: i32[N, 4]) -> f32[N, 2] {
  word |> embedding(17, 6) |> layer_norm
    |> transpose([0, 2, 1]) |> mean([positions]) |> linear(2)
}

train Centred {
  data      = synthetic(vocabulary=17, targets=true)
  batch     = 8
  epochs    = 2
  loss      = mean(mse(output, label))
  optimizer = sgd(lr=0.05)
}
END
compare 0 centred.net
expect_says "^good .*e-05  div of mean_1"
FAULT='s/q1 < 6/q1 < 5/' compare 7 centred.net

# A library makes NaN of an infinity times the zeros around an image.
cat >edges.net <<'END'
model Edges(image: f32[N, 12, 12, 3]) -> f32[N, 1] {
  image |> conv(1, 2) |> conv(17, 2, pad=[0, 1, 2, 0], bias=false)
    |> slice(height, 11) |> layer_norm |> conv(1, 1)
    |> mean([height, width]) |> linear(1)
}

train Edges {
  data      = synthetic(samples=64, test=16, targets=true)
  batch     = 4
  epochs    = 2
  loss      = sum(l1(output, label))
  optimizer = adamw(lr=0.01)
  precision = f16
}
END
compare 0 edges.net -a --act=recipe -b "-O0 --act=recipe"
expect_says "^skipped .*nan  conv_2.weight  f16\[24,2,2,8\]  gradient"

# Numbers of which roundings leave little: where two of a window are all but
# equal, either place is right.
cat >places.net <<'END'
model Places(image: u8[N, 32, 32, 3]) -> f32[N, 10] {
  x = image |> normalize(mean=[128, 128, 128], std=[64, 64, 64])
  y = concat([conv(x, 8, 3) + 300, conv(x, 8, 3) + 300])
  y |> max_pool(3, stride=2) |> conv(8, 1) |> global_avg_pool |> linear(10)
}

train Places {
  data      = synthetic(samples=64, test=16)
  batch     = 32
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=1e-6)
}
END
compare 0 places.net
expect_says "^good .* max_pool_index of max_pool_1, backward  u8"

# What a resize makes of the same pixels is a number twice but for a rounding of
# double, which decides which is the first of the largest.
cat >ties.net <<'END'
model Ties(image: u8[N, 4, 4, 1]) -> f32[N, 3] {
  x = image |> normalize(120, 60) |> conv(2, 3) |> pad(2, mode=edge)
  best = x |> resize([8, 15], mode=bilinear) |> argmax(axis=width)
  concat([best |> one_hot(15) |> flatten, x |> flatten]) |> linear(3)
}

train Ties {
  data      = synthetic(samples=64, test=16)
  batch     = 16
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.05)
}
END
compare 0 ties.net --steps=1
expect_says ", 0 wrong;"

# A step that reads only copies of a frozen parameter does not have it.
sed 's/^    |> thin(8)/    |> conv(11, 3, bias=false) as fixed\n&/
    s/^  epochs .*/&\n  precision = mixed(f16)\n  freeze "fixed.weight"/' means.net >frozen.net
compare 0 frozen.net
expect_says ", 0 wrong;"
