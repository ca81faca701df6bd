// Writes a logo as large as an issuer may have, into the file that is named: 12 KiB, filled up behind the picture's end.
import { writeFileSync } from "node:fs";
import { require } from "../browser/page.mjs";

const LOGO_BYTES_MAX = 12 * 1024;
const { PNG } = require("pngjs");
const picture = new PNG({ width: 240, height: 64 });
for (let at = 0; at < picture.data.length; at += 4) {
  const [x, y] = [(at / 4) % picture.width, Math.floor(at / 4 / picture.width)];
  picture.data.set([224, 33, 138, (x + y) % 32 < 20 ? 255 : 0], at);
}
const file = Buffer.alloc(LOGO_BYTES_MAX);
PNG.sync.write(picture).copy(file);
writeFileSync(process.argv[2], file);
