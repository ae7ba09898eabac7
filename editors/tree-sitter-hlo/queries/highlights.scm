; SPDX-License-Identifier: Apache-2.0
["HloModule" "ENTRY" "ROOT" "FileNames" "FunctionNames" "FileLocations" "StackFrames"] @keyword
(comment) @comment
(string) @string
(string_part) @string
(escape) @string.escape
(number) @number
(type) @type
(dimensions) @type
(layout) @type.qualifier
(module name: (_) @namespace)
(computation name: (identifier) @function)
(instruction name: (identifier) @variable)
(instruction opcode: (identifier) @function.builtin)
(unnamed_instruction opcode: (identifier) @function.builtin)
(call opcode: (identifier) @function.builtin)
(operand name: (identifier) @variable)
(attribute name: (identifier) @property)
((attribute name: (identifier) @_name value: (value (identifier) @function))
 (#match? @_name "^(calls|to_apply|body|condition|true_computation|false_computation|scatter|select)$"))
((attribute value: (value (identifier) @constant)) (#match? @constant "^[^%]"))
((identifier) @boolean (#match? @boolean "^(true|false)$"))
["=" "->"] @operator
["," ] @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
