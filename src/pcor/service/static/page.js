// Copying to the clipboard. Everything else on the page works without a script, or is htmx's.
"use strict";

function reveal(within) {
  for (const button of within.querySelectorAll("button.copy[hidden]")) button.hidden = false;
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  getSelection().selectAllChildren(source);
  try {
    // Absent where the page is neither local nor sent over HTTPS; then the text stays selected.
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) copy(button);
});
document.addEventListener("htmx:load", (event) => reveal(event.detail.elt.parentNode || document));
reveal(document);
