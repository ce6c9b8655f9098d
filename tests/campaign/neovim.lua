-- Drives sinter lsp and the tree-sitter grammar in Neovim.  The settings are
-- those of docs/editors.md; the file net.net has one wrong name.

local function line(number)
  return vim.api.nvim_buf_get_lines(0, number - 1, number, true)[1]
end

local function wait_for(event, condition)
  assert(vim.wait(20000, condition, 20), "no " .. event)
end

local function text_of(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
end

-- Finds the first place of a pattern and moves the cursor there.
local function go(pattern)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  assert(vim.fn.search(pattern, "cW") > 0, pattern)
end

local function ask(method, more)
  local client = vim.lsp.get_clients({ bufnr = 0 })[1]
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params = vim.tbl_extend("force", params, more or {})
  local reply = assert(client:request_sync(method, params, 20000, 0))
  assert(not reply.err, vim.inspect(reply.err))
  return reply.result
end

local function test_diagnostics()
  wait_for("diagnostics", function() return #vim.diagnostic.get(0) == 1 end)
  local found = vim.diagnostic.get(0)[1]
  assert(found.code == "E0201" and found.source == "sinter", vim.inspect(found))
  local text = line(found.lnum + 1):sub(found.col + 1, found.end_col)
  assert(text == "linaer", text)
  go("linaer")
  vim.lsp.buf.code_action({ apply = true })
  wait_for("quick fix", function() return line(6):find("linear%(10%)") end)
  wait_for("end of diagnostics", function()
    return #vim.diagnostic.get(0) == 0
  end)
end

local function test_hover()
  go("wide(32)")
  vim.lsp.buf.hover()
  local text
  wait_for("hover", function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        text = text_of(vim.api.nvim_win_get_buf(window))
        vim.api.nvim_win_close(window, true)
        return true
      end
    end
  end)
  assert(text:find("wide(x, channels=8)", 1, true), text)
  assert(text:find("linear_3"), text)
end

local function test_hints()
  vim.lsp.inlay_hint.enable(true)
  local hints
  wait_for("hints", function()
    hints = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #hints >= 2
  end)
  local hint = hints[1].inlay_hint
  assert(hint.label == "[N, 16]", vim.inspect(hint))
end

local function test_names()
  go("train Net")
  vim.cmd("normal w")
  vim.lsp.buf.definition()
  wait_for("definition", function() return vim.fn.line(".") == 4 end)
  go("width=16")
  vim.lsp.buf.rename("narrow")
  wait_for("rename", function() return line(5):find("linear%(narrow%)") end)
  assert(line(4):find("narrow=16"), line(4))
  local uses = ask("textDocument/references",
    { context = { includeDeclaration = true } })
  assert(#uses == 2, vim.inspect(uses))
  local symbols = ask("textDocument/documentSymbol")
  assert(symbols[1].name == "Net", vim.inspect(symbols))
  go("flatten")
  local items = ask("textDocument/completion")
  assert(#(items.items or items) > 50, vim.inspect(items))
end

local function test_format()
  local tidy = text_of(0)
  vim.api.nvim_buf_set_lines(0, 4, 5, true,
    { "      h=image|>flatten|>linear( narrow )" })
  assert(text_of(0) ~= tidy)
  vim.lsp.buf.format({ timeout_ms = 20000 })
  assert(text_of(0) == tidy, line(5))
end

local function capture_at(pattern)
  go(pattern)
  local found = vim.treesitter.get_captures_at_cursor(0)
  return found[#found]
end

local function test_colours()
  assert(vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()])
  vim.treesitter.get_parser(0):parse(true)
  for pattern, capture in pairs({
    ["model"] = "keyword", ["f32"] = "type.builtin", ["linear"] = "function",
    ["narrow=16"] = "variable.parameter", ["batch"] = "attribute",
    ["100"] = "constant.numeric", ["#"] = "comment", ["|>"] = "operator",
  }) do
    local found = capture_at(pattern)
    assert(found == capture, pattern .. " is " .. tostring(found))
  end
  vim.wo.foldmethod = "expr"
  vim.wo.foldexpr = "v:lua.vim.treesitter.foldexpr()"
  wait_for("folds", function() return vim.fn.foldlevel(5) > 0 end)
end

local function test_end()
  local client = vim.lsp.get_clients({ bufnr = 0 })[1]
  client:stop()
  wait_for("end of the server", function() return client:is_stopped() end)
end

local function all()
  test_diagnostics()
  test_hover()
  test_hints()
  test_names()
  test_format()
  test_colours()
  test_end()
end

local good, why = xpcall(all, debug.traceback)
io.stdout:write(good and "good\n" or why .. "\n")
vim.cmd(good and "qall!" or "cquit")
