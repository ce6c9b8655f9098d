# shellcheck shell=sh
# Sourced by tests that read the same images in several ways.

# model DATA: a model file for images of three classes.
model() {
    cat <<NET
model Net(image: u8[N, 16, 16, 3]) -> f32[N, 3] {
  image |> normalize(mean=128, std=64) |> flatten |> linear(3)
}

train Net {
  data      = $1
  batch     = 4
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01)
}
NET
}
