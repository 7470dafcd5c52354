// The page of a generator, behind worker.js.

const save = document.getElementById("save");
const scale = Math.max(1, Math.floor(128 / about.size));
const seedStride = about.placesApart;

for (const [number, name] of about.names.entries()) form.label.add(new Option(name, number));

// A box for each attribute, before the number of sprites.
const boxes = Object.entries(about.attributes).map(([name, values]) => {
  const label = document.createElement("label"), box = document.createElement("select");
  for (const value of ["", ...values]) box.add(new Option(value || "Any", value));
  label.append(name, box);
  form.count.parentElement.before(label);
  return [name, box];
});

const worker = startWorker(drawSprite, "sprite", (answer, isLast) => {
  list.append(tile(answer));
  save.disabled = !isLast;
});

// Runs in the worker.
function drawSprite(model, { label, values, seed, guidance, steps }) {
  model.choose(values);
  return { label, values, rgba: model.draw(label, seed, guidance, steps) };
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

function nameOf({ label, values }) {
  const names = Object.values(values);
  if (label >= 0 || !names.length) names.unshift(label < 0 ? "any class" : about.names[label]);
  return names.join(", ");
}

function tile(answer) {
  const item = document.createElement("li"), button = document.createElement("button"), words = document.createElement("span");
  const canvas = canvasOf(answer.rgba);
  canvas.style.width = canvas.style.height = `${about.size * scale}px`;
  words.textContent = nameOf(answer);
  button.type = "button";
  button.title = `${nameOf(answer)}, seed ${answer.seed}: save as PNG`;
  button.setAttribute("aria-label", button.title);
  button.onclick = () => download(canvas, `${nameOf(answer).replace(/[^\p{L}\p{N}]+/gu, " ").trim()} ${answer.seed}.png`);
  button.append(canvas, words);
  item.append(button);
  return item;
}


form.onsubmit = (event) => {
  event.preventDefault();
  const count = form.count.valueAsNumber, chosen = form.label.value, classes = about.names.length;
  const values = Object.fromEntries(boxes.filter(([, box]) => box.value).map(([name, box]) => [name, box.value]));
  const inTurn = Object.keys(values).length ? () => -1 : (index) => index % classes; // values decide alone
  const round = beginRound(count);
  save.disabled = true;
  for (let index = 0; index < count; index++) {
    const label = chosen === "turn" ? inTurn(index) : Number(chosen), seed = form.seed.valueAsNumber + seedStride * index;
    worker.postMessage({ round, label, values, seed, guidance: form.guidance.valueAsNumber, steps: form.steps.valueAsNumber });
  }
};

form.dice.onclick = () => {
  form.seed.value = Math.floor(Math.random() * 1e6);
  form.requestSubmit(form.go);
};

save.onclick = () => download(canvasOf(drawn.map((sprite) => sprite.rgba), 8), `${about.title} ${drawn[0].seed}.png`);
