; Captures have Helix's names; Neovim falls back to their beginnings.

(identifier) @variable
(comment) @comment
(string) @string
(escape) @constant.character.escape
(number) @constant.numeric
(unit) @constant.numeric

[
  "import"
  "let"
  "fn"
  "model"
  "train"
  "for"
  "in"
  "if"
  "else"
  "with"
  "as"
  "true"
  "false"
  "and"
  "or"
  "not"
] @keyword
(boolean) @constant.builtin.boolean

; The words of clauses are names elsewhere.
[
  "eval"
  "checkpoint"
  "params"
  "freeze"
  "stop"
  "every"
  "at"
  "end"
  "on"
  "keep"
  "after"
  "when"
] @keyword

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
["|>" "->" "=" "==" "!=" "<" ">" "<=" ">=" "+" "-" "*" "/" "@" "^"] @operator

(function name: (identifier) @function)
(model name: (identifier) @function)
(train model: (identifier) @function)
(import name: (identifier) @function)
(call function: (identifier) @function)
(stage call: (identifier) @function)
(stage name: (identifier) @label)

(type element: (identifier) @type.builtin)
(parameter name: (identifier) @variable.parameter)
(argument name: (identifier) @variable.parameter)
(member name: (identifier) @variable.other.member)
(key name: (identifier) @attribute)
(key flag: (identifier) @variable.parameter)
