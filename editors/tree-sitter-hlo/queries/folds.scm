; SPDX-License-Identifier: Apache-2.0
[(computation) (table) (instruction) (comment)] @fold
