"use strict";
// Shows the two chosen sources side by side, each by its own model and variant. They are copies of those below.
(() => {
  const form = document.getElementById("choices");
  if (!form) return;
  const sources = [...document.querySelectorAll("details.source")];
  const panes = [...document.querySelectorAll(".pane")];

  // A model's source in the chosen variant, else its first one; undefined if it has no source of the kernel.
  const find = (kernel, variant, model) => {
    const own = sources.filter(({ dataset }) => dataset.kernel === kernel && dataset.model === model);
    return own.find(({ dataset }) => dataset.variant === variant) ?? own[0];
  };

  const show = () => {
    const { kernel } = form.elements;
    for (const pane of panes) {
      const model = form.elements[`${pane.dataset.side}-model`];
      const variant = form.elements[`${pane.dataset.side}-variant`];
      for (const option of model.options) option.disabled = !find(kernel.value, variant.value, option.value);
      if (model.selectedOptions[0]?.disabled) model.value = [...model.options].find((each) => !each.disabled)?.value;
      const source = find(kernel.value, variant.value, model.value);
      if (!source) continue;
      const found = source.dataset.variant;
      const [title, note] = pane.children;
      title.textContent = source.querySelector("summary").textContent;
      note.hidden = found === variant.value;
      note.textContent = note.hidden ? "" : `${model.value} has no variant ${variant.value} of ${kernel.value}: this is ${found}.`;
      pane.querySelector(".body").replaceWith(source.querySelector(".body").cloneNode(true));
    }
  };

  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  document.getElementById("without-script").hidden = true;
  show(); // a browser that returns to the page keeps what was chosen
})();
