-- SPDX-License-Identifier: Apache-2.0
-- Every request, by Neovim's client: run by neovim_test.py.

local passed, failed = 0, 0
local function check(name, condition, detail)
  if condition then
    passed = passed + 1
  else
    failed = failed + 1
    io.stdout:write("failed: " .. name .. " " .. vim.inspect(detail) .. "\n")
  end
end

local program = {
  "HloModule model",
  "",
  "sum {",
  "  a = f32[] parameter(0)",
  "  b = f32[] parameter(1)",
  "  ROOT r = f32[] add(a, b)",
  "}",
  "",
  "ENTRY main {",
  "  x = f32[8,16] parameter(0)",
  "  w = f32[16,4] parameter(1)",
  '  h = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}',
  "  zero = f32[] constant(0)",
  "  idle = f32[8,4] tanh(h)",
  "  ROOT s = f32[8] reduce(h, zero), dimensions={1}, to_apply=sum",
  "}",
}

local function wait(name, condition)
  check(name, vim.wait(10000, condition, 20), nil)
end

local function run()
  vim.fn.writefile(program, "model.hlo")
  vim.cmd("edit model.hlo")
  check("the file type is hlo", vim.bo.filetype == "hlo", vim.bo.filetype)
  wait("a client is attached", function()
    local client = vim.lsp.get_active_clients()[1]
    return client ~= nil and client.initialized and vim.lsp.buf_is_attached(0, client.id)
  end)
  local client = vim.lsp.get_active_clients()[1]

  local function request(method, params)
    params.textDocument = vim.lsp.util.make_text_document_params()
    local answers, problem = vim.lsp.buf_request_sync(0, method, params, 10000)
    check(method .. " is answered", answers and answers[client.id] and not answers[client.id].err, { answers, problem })
    return answers and answers[client.id] and answers[client.id].result
  end
  -- The position before the first `what` of a line, from 1.
  local function at(line, what)
    return { position = { line = line - 1, character = vim.fn.getline(line):find(what, 1, true) - 1 } }
  end

  check("definition", request("textDocument/definition", at(14, "h)")).range.start.line == 11)
  local here = at(12, "h =")
  here.context = { includeDeclaration = true }
  check("references", #request("textDocument/references", here) == 3)
  check("highlights", #request("textDocument/documentHighlight", at(12, "h =")) == 3)
  check("hover", request("textDocument/hover", at(12, "h =")).contents.value:find("1.02 KFLOP", 1, true))
  check("outline", #request("textDocument/documentSymbol", {}) == 3)
  check("folding", #request("textDocument/foldingRange", {}) == 2)
  check("tokens", #request("textDocument/semanticTokens/full", {}).data > 100)
  check("lenses", #request("textDocument/codeLens", {}) == 4)
  local all = { range = { start = { line = 0, character = 0 }, ["end"] = { line = 20, character = 0 } } }
  check("hints", #request("textDocument/inlayHint", all) > 3)
  check("tokens of a range", #request("textDocument/semanticTokens/range", all).data > 100)
  check("diagnostics", #request("textDocument/diagnostic", {}).items == 0)
  local items = request("textDocument/prepareCallHierarchy", at(3, "sum"))
  check("incoming calls", #request("callHierarchy/incomingCalls", { item = items[1] }) == 1)
  check("outgoing calls", #request("callHierarchy/outgoingCalls", { item = items[1] }) == 0)
  check("completion", #request("textDocument/completion", at(14, "h)")).items == 4)
  check("prepared rename", request("textDocument/prepareRename", at(12, "h =")).placeholder == "h")

  -- Edits by the functions that keys are bound to.
  vim.fn.cursor(12, 3)
  vim.lsp.buf.rename("hidden")
  wait("rename", function() return vim.fn.getline(14):find("tanh(hidden)", 1, true) ~= nil end)
  vim.fn.setline(14, "  idle = f32[8,4] tanhh(hidden)")
  wait("an error is shown", function() return #vim.diagnostic.get(0) == 1 end)
  check("its message", vim.diagnostic.get(0)[1].message:find("did you mean `tanh`?", 1, true), vim.diagnostic.get(0))
  local range = { start = at(14, "tanhh").position, ["end"] = at(14, "tanhh").position }
  local actions = request("textDocument/codeAction", { range = range, context = { diagnostics = {} } })
  vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
  check("correction", vim.fn.getline(14) == "  idle = f32[8,4] tanh(hidden)", vim.fn.getline(14))
  wait("the error is gone", function() return #vim.diagnostic.get(0) == 0 end)
  -- Characters that have two units.
  vim.fn.setline(14, "  /* 𝔸é */ idle = f32[8,4] tanhh(hidden)")
  wait("an error after them is shown", function() return #vim.diagnostic.get(0) == 1 end)
  local shown = vim.diagnostic.get(0)[1]
  check("its place", vim.fn.getline(14):sub(shown.col + 1, shown.end_col) == "tanhh", shown)
  vim.fn.setline(14, "  idle = f32[8,4] tanh(hidden)")
  wait("that is gone too", function() return #vim.diagnostic.get(0) == 0 end)

  local function command(name, options)
    options.show = false
    local answers = vim.lsp.buf_request_sync(0, "workspace/executeCommand", {
      command = name, arguments = { vim.uri_from_bufnr(0), options } }, 60000)
    local answer = answers and answers[client.id] or {}
    check(name, answers and not answer.err, answers)
    return answer.result
  end
  command("hlo.removeDead", {})
  wait("dead code is removed", function() return vim.fn.getline(14):find("ROOT", 1, true) ~= nil end)
  check("simulation", command("hlo.simulate", {}).text:find("v5e", 1, true))
  check("run", command("hlo.run", {}).text:find("f32[8]", 1, true))
  check("graph", vim.fn.filereadable(vim.uri_to_fname(command("hlo.graph", {}).uri)) == 1)
  check("extract", vim.fn.filereadable(vim.uri_to_fname(command("hlo.extract", { name = "hidden" }).uri)) == 1)
  vim.lsp.buf.formatting_sync(nil, 10000)
  check("formatting", vim.fn.getline(3) == "%sum (a: f32[], b: f32[]) -> f32[] {", vim.fn.getline(3))

  -- The other languages.
  vim.fn.writefile({ "tpu mine", "  like v5e", "  clok 1 GHz" }, "mine.tpu")
  vim.cmd("edit! mine.tpu")
  wait("a machine has diagnostics", function() return #vim.diagnostic.get(0) == 1 end)
  vim.fn.writefile({ "algsimp,fusoin" }, "p.passes")
  vim.cmd("edit! p.passes")
  wait("a pipeline has diagnostics", function() return #vim.diagnostic.get(0) == 1 end)

  client.stop()
  wait("the server ends", function() return client.is_stopped() end)
end

local ok, problem = pcall(run)
check("the script runs", ok, problem)
io.stdout:write(passed .. " passed, " .. failed .. " failed\n")
vim.cmd(failed == 0 and "qall!" or "cquit!")
