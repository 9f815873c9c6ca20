/** Returns the members of the ZIP archive at the end of a file, by name; they are uncompressed. */
export function readArchive(bytes) {
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
    if (view.getUint16(entry + 10, true) !== 0) throw new Error(`${name} is compressed.`);
    members[name] = bytes.subarray(begin, begin + size);
    entry += 46 + nameLength + view.getUint16(entry + 30, true) + view.getUint16(entry + 32, true);
  }
  return members;
}
