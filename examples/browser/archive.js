const STORED = 0, DEFLATED = 8; // methods of compression

/** Returns a promise of the members of the ZIP archive at the end of a file, by name. */
export async function readArchive(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - 22; // the archives of this package have no comment at the end
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50) return {};
  const members = {};
  let entry = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    const size = view.getUint32(entry + 20, true);
    const nameLength = view.getUint16(entry + 28, true);
    const name = new TextDecoder().decode(bytes.subarray(entry + 46, entry + 46 + nameLength));
    // The data follows a second header, whose name and extra field have lengths of their own.
    const header = view.getUint32(entry + 42, true);
    const begin =
      header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
    const content = bytes.subarray(begin, begin + size);
    const method = view.getUint16(entry + 10, true);
    if (method !== STORED && method !== DEFLATED) {
      throw new Error(`${name} is compressed by the unknown method ${method}.`);
    }
    members[name] = method === STORED ? content : await inflate(content);
    entry += 46 + nameLength + view.getUint16(entry + 30, true) + view.getUint16(entry + 32, true);
  }
  return members;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
