// SPDX-License-Identifier: Apache-2.0
// Style sheets are imported as text.
declare module "*.css" {
  const text: string;
  export default text;
}
