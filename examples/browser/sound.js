/** Sound of files and of the microphone as samples of one channel, by the Web Audio API. */

/**
 * Returns the samples of a file in any format that the browser plays, a Float32Array.
 *
 * @param {ArrayBuffer} bytes The contents of the file.
 * @param {number} rate Samples per second of the result; the browser converts other rates.
 */
export async function decodeSound(bytes, rate) {
  // The rate of the context is the one that sound is converted to.
  const context = new OfflineAudioContext(1, 1, rate);
  const buffer = await context.decodeAudioData(bytes).catch((cause) => {
    throw new Error("The browser cannot read this file as sound.", { cause });
  });
  return mixed([...Array(buffer.numberOfChannels).keys()].map((at) => buffer.getChannelData(at)));
}

/** Returns the mean of channels of equal length. */
function mixed(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, at) => {
    const sum = channels.reduce((total, channel) => total + channel[at], 0);
    return sum / channels.length;
  });
}

/**
 * Begins to record the microphone. Returns `{ stop, sound }`: the function `stop` ends the recording,
 * and `sound` is a promise of the samples, at most `longest`; the recording ends by itself then.
 */
export async function record(rate, longest) {
  if (!navigator.mediaDevices) throw new Error("Only pages from HTTPS or localhost may use the microphone.");
  const audio = { channelCount: 1, echoCancellation: false };
  const stream = await navigator.mediaDevices.getUserMedia({ audio }).catch((cause) => {
    throw new Error("The page may not use the microphone.", { cause });
  });
  const recorder = new MediaRecorder(stream);
  const stop = () => {
    if (recorder.state !== "inactive") recorder.stop();
  };
  const chunks = [];
  recorder.ondataavailable = ({ data }) => chunks.push(data);
  const ended = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start();
  const timer = setTimeout(stop, (1000 * longest) / rate);
  const read = async () => {
    await ended;
    clearTimeout(timer);
    stream.getTracks().forEach((track) => track.stop());
    const samples = await decodeSound(await new Blob(chunks).arrayBuffer(), rate);
    return samples.slice(0, longest); // the recorder stops a little late
  };
  return { stop, sound: read() };
}
