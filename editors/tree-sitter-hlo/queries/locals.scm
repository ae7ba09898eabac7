; SPDX-License-Identifier: Apache-2.0
(source) @local.scope
(body) @local.scope
(computation name: (identifier) @local.definition)
(instruction name: (identifier) @local.definition)
(operand name: (identifier) @local.reference)
(value (identifier) @local.reference)
