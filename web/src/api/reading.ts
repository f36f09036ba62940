// Reads that follow changes: at most one at a time, with a rest in proportion to its length. A list of 500 clusters takes
// megabytes, and an installation changes it many times a second.

/** The rest after a read, as a multiple of its duration. */
const REST = 3;

/** A function that starts `read`, or once more after the present one and its rest. */
export function rested(read: () => Promise<unknown>): () => void {
  let isBusy = false;
  let isWanted = false;
  const run = async () => {
    if (isBusy) {
      isWanted = true;
      return;
    }
    isBusy = true;
    isWanted = false;
    const began = performance.now();
    await read().catch(() => {});
    setTimeout(() => {
      isBusy = false;
      if (isWanted) void run();
    }, REST * (performance.now() - began));
  };
  return () => void run();
}
