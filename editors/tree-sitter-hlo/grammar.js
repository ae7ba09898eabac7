// SPDX-License-Identifier: Apache-2.0
// HLO text for tree-sitter: modules, computations, instructions, operands and attributes. Values of attributes are nested
// brackets of words, with a node for each, whatever the attribute; what they mean is the language server's part.
/// <reference types="tree-sitter-cli/dsl" />

module.exports = grammar({
  name: "hlo",
  word: ($) => $.identifier,
  extras: ($) => [/\s/, $.comment],

  conflicts: ($) => [[$.array_shape], [$.buffer_shape]],

  rules: {
    source: ($) => repeat(choice($.module, $.table, $.computation, $.instruction, $.unnamed_instruction)),

    comment: (_) => token(prec(10, choice(seq("//", /[^\n]*/), seq("/*", /[^*]*\*+([^/*][^*]*\*+)*/, "/")))),

    module: ($) => seq("HloModule", field("name", choice($.identifier, $.word)), optional(":"), repeat(seq(",", $.attribute))),

    // FileNames, FunctionNames, FileLocations, StackFrames.
    table: ($) => prec.right(seq(field("name", choice("FileNames", "FunctionNames", "FileLocations", "StackFrames")), repeat($.row))),
    row: ($) => seq($.number, choice($.string, $.braces)),

    computation: ($) =>
      prec.right(seq(
        choice(seq("ENTRY", optional(field("name", $.identifier))), field("name", $.identifier)),
        optional(field("parameters", $.parentheses)),
        optional(seq("->", field("result", $._shape))),
        field("body", choice($.body, alias($._immediate_body, $.body))),
        repeat(seq(",", $.attribute)))),
    body: ($) => seq("{", repeat(seq($.instruction, optional(";"))), "}"),
    // `-> f32[2]{`, where a layout might be.
    _immediate_body: ($) => seq(token.immediate("{"), repeat(seq($.instruction, optional(";"))), "}"),

    instruction: ($) =>
      seq(optional("ROOT"), field("name", $.identifier), "=", optional($._result), $._operation),
    unnamed_instruction: ($) => seq(optional("ROOT"), $._result, $._operation),
    // Spaces may be in it here.
    _result: ($) =>
      seq(field("shape", choice($._shape, alias($._spaced_shape, $.array_shape))), optional(alias($.braces, $.layout))),
    _spaced_shape: ($) => seq(field("type", alias($.identifier, $.type)), alias($.brackets, $.dimensions)),
    _operation: ($) =>
      prec.right(seq(field("opcode", $.identifier), "(", optional($.operands), ")", repeat(seq(",", $.attribute)))),

    operands: ($) => seq($.operand, repeat(seq(",", $.operand)), optional(",")),
    operand: ($) => repeat1($._operand_piece),
    _operand_piece: ($) =>
      choice($._shape, $.call, field("name", $.identifier), $.number, $.word, $.string, $.braces, $.element),
    // An instruction as an operand.
    call: ($) => prec(1, seq(field("opcode", $.identifier), "(", optional($.operands), ")")),
    // %tuple#1
    element: (_) => token.immediate(/#\d+/),

    _shape: ($) => choice($.array_shape, alias($.parentheses, $.tuple_shape), $.buffer_shape),
    array_shape: ($) =>
      seq(field("type", alias($.identifier, $.type)), alias($._immediate_brackets, $.dimensions), optional(alias($._immediate_braces, $.layout))),
    buffer_shape: ($) => seq(token(prec(3, "b(")), $._shape, ")", optional(alias($._immediate_braces, $.layout))),

    attribute: ($) => seq(field("name", $.identifier), "=", field("value", $.value)),
    // Pieces without space between them: `[2,4]<=[8]T(1,0)`, `b01f_01io->b01f`.
    value: ($) =>
      prec.right(seq(
        choice($.string, $.identifier, $.number, $.word, $.braces, $.brackets, $.parentheses),
        repeat(choice(
          $.string_part,
          alias($._immediate_word, $.word),
          alias($._immediate_braces, $.braces),
          alias($._immediate_brackets, $.brackets),
          alias($._immediate_parentheses, $.parentheses))),
        // The value of a literal: `s32[2]{0} {1, 2}`.
        optional(choice($.braces, $.number, $.parentheses)))),

    braces: ($) => seq("{", repeat($._element), "}"),
    brackets: ($) => seq("[", repeat($._element), "]"),
    parentheses: ($) => seq("(", repeat($._element), ")"),
    _immediate_braces: ($) => seq(token.immediate("{"), repeat($._element), "}"),
    _immediate_brackets: ($) => seq(token.immediate("["), repeat($._element), "]"),
    _immediate_parentheses: ($) => seq(token.immediate("("), repeat($._element), ")"),
    _element: ($) =>
      choice($.string, $.array_shape, $.identifier, $.number, $.word, $.braces, $.brackets, $.parentheses, "=", ",", "/", "ROOT", "->"),

    string_part: ($) => seq(token.immediate("\""), repeat(choice(token.immediate(prec(20, /[^"\\]+/)), $.escape)), "\""),
    string: ($) => seq('"', repeat(choice(token.immediate(prec(20, /[^"\\]+/)), $.escape)), '"'),
    escape: (_) => token.immediate(/\\./),

    identifier: (_) => /%[A-Za-z0-9_.\-]+|[A-Za-z_][A-Za-z0-9_.\-]*/,
    number: (_) => token(prec(1, /-?\d+(\.\d*)?([eE][+-]?\d+)?/)),
    word: (_) => token(prec(-1, /[^\s{}()\[\]",\/=]+/)),
    _immediate_word: (_) => token.immediate(prec(3, /[^\s{}()\[\]",\/]+/)),
  },
});
