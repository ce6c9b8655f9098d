// The grammar of frontend/text/parse*.c, whose comments have each rule.
// src/scanner.c decides which lines end a statement.

const LEVEL = {
  chain: 1, or: 2, and: 3, not: 4, compare: 5, sum: 6, product: 7, sign: 8,
  power: 9, postfix: 10,
};

// Those of frontend/text/tokens.def.
const KEYWORDS = [
  "import",
  "let",
  "fn",
  "model",
  "train",
  "for",
  "in",
  "if",
  "else",
  "with",
  "as",
  "true",
  "false",
  "and",
  "or",
  "not",
];

// Items between brackets.
const items = (item) =>
  optional(seq(item, repeat(seq(",", item)), optional(",")));

// Items, statements or entries.
function lines($, line) {
  const end = choice($._line_end, ";");
  return seq(line, repeat(seq(end, line)), optional(end));
}

const left = ($, level, operators) => prec.left(level, seq(
  field("left", $._binary),
  field("operator", operators),
  field("right", $._binary)));

module.exports = grammar({
  name: "sinter",
  word: $ => $.identifier,
  reserved: { keywords: _ => KEYWORDS },
  extras: $ => [/\s/, $.comment],
  externals: $ => [$._line_end],
  supertypes: $ => [$._item, $._statement, $._entry],

  rules: {
    file: $ => optional(lines($, $._item)),
    _item: $ => choice($.import, $.let, $.function, $.model, $.train),

    import: $ => seq(
      "import", field("path", $.string),
      "{", items(field("name", $.identifier)), "}"),

    let: $ => seq("let", $._name_and_value),
    assignment: $ => $._name_and_value,
    _name_and_value: $ => seq(
      field("name", $.identifier), "=", field("value", $._expression)),

    // Functions

    function: $ => seq(
      "fn", $._signature,
      choice(seq("=", field("body", $._expression)), field("body", $.block))),
    model: $ => seq(
      "model", field("name", $.identifier), field("parameters", $.parameters),
      optional(seq("->", field("result", choice($.type, $.outputs)))),
      field("body", $.block)),
    outputs: $ => seq("(", items($.output), ")"),
    output: $ => seq(field("name", $.identifier), ":", field("type", $.type)),
    _signature: $ => seq(
      field("name", $.identifier), field("parameters", $.parameters),
      optional(seq("->", field("result", $.type)))),
    parameters: $ => seq("(", items($.parameter), ")"),
    parameter: $ => seq(
      field("name", $.identifier),
      optional(seq(":", field("type", $.type))),
      optional(seq("=", field("default", $._expression)))),
    type: $ => seq(
      field("element", $.identifier), "[", items($._expression), "]"),

    // Statements

    block: $ => seq("{", optional(lines($, $._statement)), "}"),
    _statement: $ => choice(
      $.function, $.for, $.if, $.with, $.let, $.assignment, $._expression),
    for: $ => seq(
      "for", field("name", $.identifier), "in", field("list", $._expression),
      field("body", $.block)),
    if: $ => seq(
      "if", field("condition", $._expression), field("body", $.block),
      optional(seq("else", field("otherwise", choice($.if, $.block))))),
    with: $ => seq(
      "with", field("value", $._expression), field("body", $.block)),

    // Expressions

    _expression: $ => choice($._binary, $.chain),
    chain: $ => prec(LEVEL.chain, seq($._binary, repeat1($.stage))),
    stage: $ => seq(
      "|>", field("call", $._postfix),
      optional(seq("as", field("name", $.identifier)))),

    _binary: $ => choice($.binary, $.unary, $._postfix),
    binary: $ => choice(
      left($, LEVEL.or, "or"),
      left($, LEVEL.and, "and"),
      left($, LEVEL.compare, choice("==", "!=", "<", ">", "<=", ">=")),
      left($, LEVEL.sum, choice("+", "-")),
      left($, LEVEL.product, choice("*", "/", "@")),
      prec.right(LEVEL.power, seq(
        field("left", $._postfix),
        field("operator", "^"),
        field("right", $._binary)))),
    unary: $ => choice(
      prec(LEVEL.not, seq(field("operator", "not"), $._binary)),
      prec(LEVEL.sign, seq(field("operator", "-"), $._binary))),

    _postfix: $ => choice(
      $.call, $.member, $.index, $.quantity,
      $.number, $.string, $.identifier, $.boolean, $.list, $.parenthesized),
    call: $ => prec(LEVEL.postfix, seq(
      field("function", $._postfix), field("arguments", $.arguments))),
    arguments: $ => seq("(", items(choice($.argument, $._knot)), ")"),
    argument: $ => seq(
      field("name", $.identifier), "=", field("value", $._knot)),
    member: $ => prec(LEVEL.postfix, seq(
      $._postfix, ".",
      field("name", choice($.identifier, alias("train", $.identifier))))),
    index: $ => prec(LEVEL.postfix, seq(
      $._postfix, "[", field("index", $._expression), "]")),
    quantity: $ => prec(LEVEL.postfix, seq($._postfix, field("unit", $.unit))),
    unit: $ => choice(
      "%", "epoch", "epochs", "step", "steps", "KiB", "MiB", "GiB"),
    list: $ => seq("[", items($._knot), "]"),
    parenthesized: $ => seq("(", $._expression, ")"),
    _knot: $ => choice($._expression, $.knot),
    knot: $ => seq(
      field("time", $._expression), ":", field("value", $._expression)),

    // The train block

    train: $ => seq(
      "train", field("model", $.identifier),
      "{", optional(lines($, $._entry)), "}"),
    _entry: $ => choice(
      $.key, $.eval, $.checkpoint, $.params, $.freeze, $.stop),
    key: $ => seq(
      field("name", choice($.identifier, alias($._clause, $.identifier))),
      "=", field("value", $._expression),
      repeat(seq(",", field("flag", $.identifier)))),
    eval: $ => seq(
      "eval", choice(seq("every", $._expression), seq("at", "end")),
      optional(seq("on", $._expression)), optional($.settings)),
    checkpoint: $ => seq(
      "checkpoint", "every", $._expression,
      optional(seq("keep", $._expression))),
    params: $ => seq("params", $.string, $.settings),
    freeze: $ => seq(
      "freeze", $.string, optional(seq("after", $._expression))),
    stop: $ => seq("stop", "when", $._expression),
    _clause: _ => choice("eval", "checkpoint", "params", "freeze", "stop"),
    settings: $ => seq("{", optional(lines($, $.key)), "}"),

    // Tokens

    identifier: _ => /[A-Za-z_][A-Za-z0-9_]*/,
    number: _ => /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/,
    boolean: _ => choice("true", "false"),
    string: $ => seq(
      '"', repeat(choice(token.immediate(/[^"\\\n]+/), $.escape)),
      token.immediate('"')),
    escape: _ => token.immediate(/\\["\\]/),
    comment: _ => /#[^\n]*/,
  },
});
