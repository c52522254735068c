"use strict";
// Shows the two sources that are chosen beside each other: copies of those that stand below.
(() => {
  const form = document.getElementById("choices");
  if (!form) return;
  const sources = [...document.querySelectorAll("details.source")];
  const panes = [...document.querySelectorAll(".pane")];

  // A model's text in the variant that is chosen; else its other one; undefined where it has no text of the kernel.
  const find = (kernel, variant, model) => {
    const own = sources.filter(({ dataset }) => dataset.kernel === kernel && dataset.model === model);
    return own.find(({ dataset }) => dataset.variant === variant) ?? own[0];
  };

  const show = () => {
    const { kernel, variant, left, right } = form.elements;
    for (const select of [left, right]) {
      for (const option of select.options) option.disabled = !find(kernel.value, variant.value, option.value);
      if (select.selectedOptions[0]?.disabled) select.value = [...select.options].find((each) => !each.disabled)?.value;
    }
    for (const pane of panes) {
      const source = find(kernel.value, variant.value, form.elements[pane.dataset.side].value);
      if (!source) continue;
      const { model, variant: found } = source.dataset;
      const [title, note] = pane.children;
      title.textContent = source.querySelector("summary").textContent;
      note.hidden = found === variant.value;
      note.textContent = note.hidden ? "" : `${model} has no variant ${variant.value} of ${kernel.value}: this is ${found}.`;
      pane.querySelector(".body").replaceWith(source.querySelector(".body").cloneNode(true));
    }
  };

  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  document.getElementById("without-script").hidden = true;
  show(); // a browser that comes back to the page keeps what was chosen
})();
