// SPDX-License-Identifier: Apache-2.0
// Queries: words that all must hold of an instruction.
//
//   dot              the name, opcode, shape or scope contains it
//   opcode:dot       the opcode is it; name:, shape:, scope:, attribute:, sharding:, source:, computation: contain it
//   /^fusion\.\d/    the name matches a regular expression; also after "name:" and the others
//   bytes>1e6        flops, bytes, time (microseconds), result, live, users, operands, trips; with <, >, <=, >=, =; 1k 1M 1G
//   -word            does not hold
import type { Graph } from "./graph";

type Test = (i: number) => boolean;
export class QueryError extends Error {}

const units: Record<string, number> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 1024, mi: 1024 ** 2, gi: 1024 ** 3 };

function textTest(word: string): (text: string) => boolean {
  const regex = /^\/(.*)\/(i?)$/.exec(word);
  if (!regex) {
    const lower = word.toLowerCase();
    return (text) => text.toLowerCase().includes(lower);
  }
  try {
    const compiled = new RegExp(regex[1], regex[2]);
    return (text) => compiled.test(text);
  } catch (error) {
    throw new QueryError(`${word} is not a regular expression: ${(error as Error).message}`);
  }
}

export function parseQuery(text: string, g: Graph): Test | null {
  const fields: Record<string, (i: number) => string> = {
    name: (i) => g.names[i], shape: (i) => g.shapeOf(i), scope: (i) => g.opNameOf(i), attribute: (i) => g.attributesOf(i), sharding: (i) => g.shardingOf(i),
    source: (i) => g.sourceOf(i), computation: (i) => g.computationNames[g.computationOf[i]], value: (i) => g.payloadOf(i),
  };
  const numbers: Record<string, (i: number) => number> = {
    flops: (i) => g.flops[i], bytes: (i) => g.bytes[i], time: (i) => g.time[i], result: (i) => g.resultBytes[i], live: (i) => g.live[i],
    users: (i) => g.usersOf(i).length, operands: (i) => g.operandsOf(i).length, trips: (i) => g.trips.get(i) ?? 0,
  };
  const tests: Test[] = [];
  for (const found of text.matchAll(/(-?)((?:[a-z]+:)?\/(?:\\.|[^/\\])*\/i?|\S+)/g)) {
    const [, minus, word] = found;
    let test: Test;
    const compared = /^([a-z]+)(<=|>=|<|>|=)(.+)$/.exec(word);
    const field = /^([a-z]+):(.+)$/.exec(word);
    if (compared && !word.startsWith("/")) {
      const [, name, operator, value] = compared;
      const number = numbers[name];
      if (!number) throw new QueryError(`there is no number "${name}"; there are ${Object.keys(numbers).join(", ")}`);
      const parsed = /^([0-9.]+(?:e[+-]?\d+)?)(ki|mi|gi|k|m|g|t|)b?$/i.exec(value);
      if (!parsed || Number.isNaN(Number(parsed[1]))) throw new QueryError(`"${value}" is not a number`);
      const bound = Number(parsed[1]) * units[parsed[2].toLowerCase()];
      const tests: Record<string, (x: number) => boolean> = { "<": (x) => x < bound, ">": (x) => x > bound, "<=": (x) => x <= bound, ">=": (x) => x >= bound, "=": (x) => x === bound };
      test = (i) => tests[operator](number(i));
    } else if (field && field[1] === "opcode") {
      const match = field[2].startsWith("/") ? textTest(field[2]) : (opcode: string) => opcode === field[2];
      test = (i) => match(g.opcodeOf(i));
    } else if (field && fields[field[1]]) {
      const match = textTest(field[2]);
      test = (i) => match(fields[field[1]](i));
    } else if (/^\/.*\/i?$/.test(word)) {
      const match = textTest(word);
      test = (i) => match(g.names[i]);
    } else {
      const match = textTest(word.replace(/^%/, ""));
      test = (i) => match(g.names[i]) || match(g.opcodeOf(i)) || match(g.shapeOf(i)) || match(g.opNameOf(i));
    }
    tests.push(minus ? (i) => !test(i) : test);
  }
  return tests.length ? (i) => tests.every((test) => test(i)) : null;
}

// Returns the instructions for which the query holds. Throws QueryError.
export function search(text: string, g: Graph): number[] {
  const test = parseQuery(text, g);
  const hits: number[] = [];
  if (test) for (let i = 0; i < g.size; ++i) if (test(i)) hits.push(i);
  return hits;
}
