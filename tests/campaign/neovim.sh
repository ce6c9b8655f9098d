#!/bin/sh
# Neovim, set up as docs/editors.md says, shows what sinter lsp and the
# tree-sitter grammar give.
#
# Needs the commands nvim 0.11, tree-sitter, node and cc.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
nvim --version 2>&1 | grep -Eq '^NVIM v(0\.1[1-9]|[1-9])' &&
    tree-sitter --version >/dev/null 2>&1 || exit 77
export HOME="$work" XDG_CONFIG_HOME="$work/.config" XDG_DATA_HOME="$work/data"
export XDG_STATE_HOME="$work/state" XDG_CACHE_HOME="$work/cache"
unset XDG_CONFIG_DIRS

# block LANGUAGE: the block of the section on Neovim.
block() {
    sed -n "/^## Neovim/,/^## [^N]/{/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}}" \
        "$SINTER_SOURCE/docs/editors.md"
}
mkdir -p .config/nvim source/tools bin
cp -r "$SINTER_SOURCE/tools/editors" source/tools
ln -s "$SINTER" bin/sinter
PATH=$work/bin:$PATH
block sh >install.sh
block lua >.config/nvim/init.lua
[ -s install.sh ] && [ -s .config/nvim/init.lua ] || fail "no settings"
(cd source && expect 0 sh -e ../install.sh) || exit 1

cat >blocks.net <<'END'
fn wide(x, channels=8) = x |> linear(channels) |> relu
END
cat >net.net <<'END'
import "blocks.net" { wide }

# größer 🙂
model Net(image: u8[N, 28, 28, 1], width=16) -> f32[N, 10] {
  h = image |> flatten |> linear(width)
  h |> wide(32) |> linaer(10)
}

train Net {
  data      = idx("data/mnist")
  batch     = 100
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
END
expect 0 timeout 120 nvim --headless -i NONE -n net.net \
    -S "$SINTER_SOURCE/tests/campaign/neovim.lua"
expect_says good
