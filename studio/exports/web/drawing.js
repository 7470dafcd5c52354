// The page of a generator. A Web Worker draws the sprites one by one, so that the page stays responsive.

const about = JSON.parse(document.getElementById("about").textContent);
const form = document.forms.ask, list = document.getElementById("sprites");
const statusLine = document.getElementById("status");
const bar = document.getElementById("bar"), save = document.getElementById("save");
const scale = Math.max(1, Math.floor(128 / about.size));
const seedStride = about.placesApart;
let currentRound = 0, drawn = [];

for (const [number, name] of about.names.entries()) form.label.add(new Option(name, number));

const source = document.getElementById("engine-code").textContent + "\n(" + work + ")();";
const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
worker.postMessage({ engine: bytesIn("engine"), model: bytesIn("model") });
worker.onmessage = ({ data }) => show(data);

// Runs in the worker: opens the model, then draws a sprite per message.
function work() {
  let model;
  onmessage = async ({ data }) => {
    try {
      if (data.engine) {
        model = await openModel(data.engine, data.model);
        postMessage({ ready: true });
        return;
      }
      const begun = performance.now();
      const rgba = model.draw(data.label, data.seed, data.guidance, data.steps);
      postMessage({ ...data, rgba, seconds: (performance.now() - begun) / 1000 });
    } catch (error) {
      postMessage({ failed: error.message });
    }
  };
}

function show(answer) {
  if (answer.failed) {
    statusLine.textContent = "This browser can't run the model: " + answer.failed;
    document.body.dataset.state = "failed";
    return;
  }
  if (answer.ready) {
    form.go.disabled = false;
    statusLine.textContent = "Ready.";
    document.body.dataset.state = "ready";
    return;
  }
  if (answer.round !== currentRound) return; // from an earlier request
  drawn.push(answer);
  list.append(tile(answer));
  bar.value = drawn.length;
  const mean = drawn.reduce((sum, sprite) => sum + sprite.seconds, 0) / drawn.length;
  statusLine.textContent = `${drawn.length} of ${bar.max}: ${mean.toFixed(2)} s per sprite`;
  if (drawn.length === bar.max) {
    bar.hidden = true;
    save.disabled = false;
    document.body.dataset.state = "done";
  }
}

function canvasOf(rgba, columns = 1) {
  const canvas = document.createElement("canvas"), sprites = Array.isArray(rgba) ? rgba : [rgba];
  canvas.width = about.size * Math.min(columns, sprites.length);
  canvas.height = about.size * Math.ceil(sprites.length / columns);
  sprites.forEach((pixels, index) => {
    const x = (index % columns) * about.size, y = Math.floor(index / columns) * about.size;
    canvas.getContext("2d").putImageData(new ImageData(pixels, about.size, about.size), x, y);
  });
  return canvas;
}

function nameOf(label) {
  return label < 0 ? "any class" : about.names[label];
}

function tile(answer) {
  const item = document.createElement("li"), button = document.createElement("button"), words = document.createElement("span");
  const canvas = canvasOf(answer.rgba);
  canvas.style.width = canvas.style.height = `${about.size * scale}px`;
  words.textContent = nameOf(answer.label);
  button.type = "button";
  button.title = `${nameOf(answer.label)}, seed ${answer.seed}: save as PNG`;
  button.setAttribute("aria-label", button.title);
  button.onclick = () => download(canvas, `${nameOf(answer.label).replace(/[^\p{L}\p{N}]+/gu, " ").trim()} ${answer.seed}.png`);
  button.append(canvas, words);
  item.append(button);
  return item;
}

function download(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

form.onsubmit = (event) => {
  event.preventDefault();
  const round = ++currentRound, count = form.count.valueAsNumber, chosen = form.label.value, classes = about.names.length;
  drawn = [];
  list.replaceChildren();
  save.disabled = true;
  bar.hidden = false;
  bar.max = count;
  bar.value = 0;
  document.body.dataset.state = "drawing";
  for (let index = 0; index < count; index++) {
    const label = chosen === "turn" ? index % classes : Number(chosen), seed = form.seed.valueAsNumber + seedStride * index;
    worker.postMessage({ round, label, seed, guidance: form.guidance.valueAsNumber, steps: form.steps.valueAsNumber });
  }
};

form.dice.onclick = () => {
  form.seed.value = Math.floor(Math.random() * 1e6);
  form.requestSubmit(form.go);
};

save.onclick = () => download(canvasOf(drawn.map((sprite) => sprite.rgba), 8), `${about.title} ${drawn[0].seed}.png`);
