#!/bin/sh
# resnet.sh LAYERS: prints the ResNet for CIFAR-10 of He et al., section 4.2,
# with 6 n + 2 layers: three stages of n blocks.
set -eu

blocks=$((($1 - 2) / 6))
[ $((6 * blocks + 2)) -eq "$1" ] && [ "$blocks" -gt 0 ] || {
    echo "resnet.sh: $1 layers are not 6 n + 2" >&2
    exit 2
}
strides=$(awk -v n="$blocks" 'BEGIN { while (--n) printf ", 1" }')

cat <<END
import "std/vision.net" { random_crop, flip_lr }

fn conv_bn(x, channels, stride=1) =
  x |> conv(channels, 3, stride=stride, bias=false) |> batch_norm

fn block(x, channels, stride) {
  h = x |> conv_bn(channels, stride) |> relu |> conv_bn(channels)
  if stride != 1 {
    x = x |> conv(channels, 1, stride=stride, bias=false) |> batch_norm
  }
  relu(x + h)
}

fn stage(x, channels, strides) {
  for s in strides { x = x |> block(channels, s) }
  x
}

model ResNet(image: u8[N, 32, 32, 3]) -> f32[N, 10] {
  image
    |> normalize(mean=[125.3, 123.0, 113.9], std=[63.0, 62.1, 66.7])
    |> conv_bn(16) |> relu
    |> stage(16, [1$strides])
    |> stage(32, [2$strides])
    |> stage(64, [2$strides])
    |> global_avg_pool
    |> linear(10)
}

train ResNet {
  data      = cifar10("data/cifar10")
  input     = data.train |> random_crop(32, pad=4) |> flip_lr
  batch     = 128, drop_last
  epochs    = 180
  precision = mixed(f16)
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1, momentum=0.9, weight_decay=1e-4)
}
END
