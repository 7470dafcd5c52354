// openModel(engineBytes, modelBytes) loads the WebAssembly engine and a model for drawing or predicting.

function bytesIn(id) {
  return Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (letter) => letter.charCodeAt(0));
}

// The error function: a Taylor series for small arguments, a continued fraction for large ones.
function erf(x) {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = x, sum = x;
    for (let n = 1; n < 60; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let rest = 0;
  for (let n = 60; n > 0; n--) rest = n / 2 / (a + rest);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + rest));
}

// attributes: the values of each attribute, as in the page's script 'about'.
async function openModel(engineBytes, modelBytes, attributes = {}) {
  const { cbrt, cos, exp, log, pow, sin, tanh } = Math;
  const libm = { cbrt, pow, cosf: cos, erff: erf, expf: exp, logf: log, sinf: sin, tanhf: tanh };
  const { instance } = await WebAssembly.instantiate(engineBytes, { env: libm });
  const engine = instance.exports;
  const start = engine.engine_room(modelBytes.length);
  if (start) new Uint8Array(engine.memory.buffer).set(modelBytes, start);
  if (!start || engine.engine_open(start)) throw new Error("Not enough memory for the model.");
  const [size, outputs] = [engine.engine_size(), engine.engine_outputs()];
  const pairs = Object.entries(attributes).flatMap(([name, values]) => values.map((value) => [name, value]));
  return {
    size,
    // Chooses values of attributes for the next sprites: {element: "fire"}. Other attributes stay open.
    choose(chosen) {
      for (const [name, value] of Object.entries(chosen)) {
        if (!pairs.some((pair) => pair[0] === name && pair[1] === value)) throw new Error(`Unknown value: ${name} ${value}.`);
      }
      const shares = new Float32Array(engine.memory.buffer, engine.engine_values(), pairs.length);
      pairs.forEach(([name, value], index) => (shares[index] = Number(Object.hasOwn(chosen, name) && chosen[name] === value)));
    },
    // Draws a sprite as RGBA bytes: the first sprite that the studio draws with this seed. label: class index, -1 for any.
    draw(label, seed, guidance = 1.5, steps = 10) {
      engine.engine_noise(seed >>> 0);
      if (!engine.engine_draw(label, guidance, steps)) throw new Error("Unknown class.");
      const at = engine.engine_finish(label);
      return new Uint8ClampedArray(engine.memory.buffer.slice(at, at + 4 * size * size));
    },
    // Draws the missing cells of a set. cells: RGBA bytes of all cells, one after the other, missing cells are ignored.
    // given: which cells to keep; without any, a new set is drawn. variety: 0 draws the most likely pixels.
    complete(cells, given, seed, variety = 0.5) {
      engine.engine_seed(seed >>> 0);
      const at = engine.engine_cells();
      new Uint8Array(engine.memory.buffer, at, cells.length).set(cells);
      new Uint8Array(engine.memory.buffer, engine.engine_given(), given.length).set(given.map(Number));
      if (!engine.engine_complete(variety, 0)) throw new Error("The given cells have too many colours.");
      return new Uint8ClampedArray(engine.memory.buffer.slice(at, at + cells.length));
    },
    // Predicts a number per output name. rgba: bytes of an image of size x size.
    predict(rgba) {
      const input = new Float32Array(engine.memory.buffer, engine.engine_input(), 4 * size * size);
      rgba.forEach((level, index) => (input[index] = level / 255));
      const at = engine.engine_predict();
      return Array.from(new Float32Array(engine.memory.buffer.slice(at, at + 4 * outputs)));
    },
  };
}
