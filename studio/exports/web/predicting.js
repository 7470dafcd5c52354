// The page of a classifier or a regression: predicts for an image that the user opens, drops or pastes.

const about = JSON.parse(document.getElementById("about").textContent);
const drop = document.getElementById("drop"), input = document.getElementById("file"), statusLine = document.getElementById("status");
const rows = document.getElementById("answers"), canvas = document.getElementById("picture");
const opened = openModel(bytesIn("engine"), bytesIn("model"));

opened.then(
  () => (document.body.dataset.state = "ready"),
  (error) => {
    statusLine.textContent = "This browser can't run the model: " + error.message;
    document.body.dataset.state = "failed";
  },
);

// Centres the image on the canvas. Larger images are scaled down by an integer factor.
async function predictFile(file) {
  const model = await opened, picture = await createImageBitmap(file);
  const factor = Math.ceil(Math.max(picture.width, picture.height) / about.size);
  const [width, height] = [Math.floor(picture.width / factor), Math.floor(picture.height / factor)];
  canvas.width = canvas.height = about.size;
  canvas.style.width = canvas.style.height = `${about.size * Math.max(1, Math.floor(160 / about.size))}px`;
  canvas.hidden = false;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, (about.size - width) >> 1, (about.size - height) >> 1, width, height);
  const found = model.predict(context.getImageData(0, 0, about.size, about.size).data);
  statusLine.textContent = file.name || "Image";
  rows.replaceChildren();
  const attributes = Object.entries(about.attributes), heads = [["Class", about.names], ...attributes];
  for (const [title, names] of heads) {
    const part = found.splice(0, names.length), order = [...names.keys()];
    if (about.makes === "labels") order.sort((a, b) => part[b] - part[a]);
    if (attributes.length) rows.append(heading(title));
    rows.append(...order.map((index) => row(names[index], part[index])));
  }
  document.body.dataset.state = "done";
}

function heading(title) {
  const line = document.createElement("tr"), cell = document.createElement("th");
  cell.colSpan = 2;
  cell.textContent = title;
  line.append(cell);
  return line;
}

function row(name, value) {
  const line = document.createElement("tr");
  const words = about.makes === "labels" ? `${(100 * value).toFixed(1)} %` : String(Number(value.toPrecision(4)));
  for (const text of [name, words]) line.insertCell().textContent = text;
  return line;
}

function openFiles(files) {
  if (files.length) predictFile(files[0]).catch((error) => (statusLine.textContent = `The image can't be read: ${error.message}`));
}

input.onchange = () => openFiles(input.files);
drop.ondragover = (event) => event.preventDefault();
drop.ondrop = (event) => {
  event.preventDefault();
  openFiles(event.dataTransfer.files);
};
onpaste = (event) => openFiles(event.clipboardData.files);
