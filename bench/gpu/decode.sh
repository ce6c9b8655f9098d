#!/bin/sh
# JPEG files decoded by nvJPEG and by libjpeg: how far their pixels are apart,
# then images a second of a network that is nothing beside its loading.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
[ -n "$PYTHON" ] && "$PYTHON" -c 'import numpy, PIL' 2>/dev/null ||
    not_here "there is no Python with NumPy and Pillow"
FILES=2000
[ -z "$SMALL" ] || FILES=8
FILES=$FILES "$PYTHON" - <<'END' || exit
import os
import numpy as np
from PIL import Image

random = np.random.default_rng(0)
for part, count in ("train", int(os.environ["FILES"])), ("test", 2):
    for i in range(count):
        os.makedirs(f"files/{part}/{i % 2}", exist_ok=True)
        small = Image.fromarray(random.integers(0, 256, (24, 32, 3), np.uint8))
        image = small.resize((500, 375), Image.BICUBIC)
        image.save(f"files/{part}/{i % 2}/{i}.jpg", quality=90)
# 4:4:4 has the colours of each pixel; 4:2:0 leaves them to the decoder.
for subsampling, name in (0, "444"), (2, "420"):
    for part in "train", "test":
        for i in range(5):
            os.makedirs(f"pixels{name}/{part}/{i}")
            small = random.integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(small).resize((64, 64), Image.BICUBIC).save(
                f"pixels{name}/{part}/{i}/0.jpg", quality=95,
                subsampling=subsampling)
END

# The gradient of this model is its batch, an image of each class.
cat >pixels.net <<'END'
model Pixels(image: u8[N, 64, 64, 3]) -> f32[N, 5] {
  image |> normalize(mean=0, std=1) |> flatten |> linear(5, bias=false)
}

train Pixels {
  data      = image_folder("pixels444", size=64)
  batch     = 5, drop_last
  steps     = 1
  loss      = sum(output * one_hot(label, 5))
  optimizer = sgd(lr=0.1, momentum=0.9)
}
END
cat >files.net <<END
model Files(image: u8[N, 224, 224, 3]) -> f32[N, 2] {
  image |> normalize(mean=128, std=64) |> global_avg_pool |> linear(2)
}

train Files {
  data      = image_folder("files", size=224)
  batch     = $((FILES < 100 ? 4 : 100)), drop_last
  epochs    = $EPOCHS
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01)
}
END
"$SINTER" build pixels.net -o pixels && "$SINTER" build files.net -o loads ||
    exit
./pixels --device="$DEVICE" --quiet --init-only --decode=nvjpeg --out=tried ||
    not_here "there is no nvJPEG"

for form in 444 420; do
    for decode in cpu nvjpeg; do
        ./pixels --device="$DEVICE" --quiet --data=pixels$form \
            --decode=$decode --out=$form.$decode || exit
    done
    apart=$(PYTHONPATH="$ROOT/tests/pytorch" "$PYTHON" - $form.*/*.safetensors <<'END'
import sys
import checkpoint
a, b = (checkpoint.load(path)["linear_1.weight.momentum"]
        for path in sys.argv[1:])
print(f"{abs(a - b).max():g} {abs(a - b).mean():.3g}")
END
    ) || exit
    row "pixels, $form: largest difference" "${apart% *}" '' "mean ${apart#* }"
    # Decoders round the transform and the colours differently.
    [ $form = 420 ] || [ "${apart% *}" -le 4 ] || {
        echo "nvJPEG and libjpeg differ by ${apart% *} of 255"
        exit 1
    }
done

for decode in cpu nvjpeg; do
    : >$decode.speeds
done
for _ in 1 2 3; do
    for decode in cpu nvjpeg; do
        rm -rf run metrics
        ./loads --device="$DEVICE" --quiet --out=run \
            --metrics=metrics --decode=$decode || exit
        speeds | median >>$decode.speeds || exit
    done
    [ -z "$SMALL" ] || break
done
for decode in cpu nvjpeg; do
    row "500 x 375, $decode" "$(median <$decode.speeds)" images/s \
        "$(paste -sd ' ' $decode.speeds)"
done
row "nvjpeg / cpu" "$(ratio "$(median <nvjpeg.speeds)" "$(median <cpu.speeds)")"
