// How many runs are chosen for a comparison.
{
  const form = document.getElementById("compare");
  const said = document.getElementById("chosen");
  const button = form.querySelector("button");
  const boxes = [...document.querySelectorAll('input[name="run"]')];
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    button.setAttribute("aria-disabled", chosen < 2);
    said.textContent = chosen < 2 ? "Choose two runs or more." : `${chosen} runs; the one that is first in the table is A.`;
  };
  boxes.forEach((box) => box.addEventListener("change", count));
  form.addEventListener("submit", (event) => { if (button.getAttribute("aria-disabled") === "true") event.preventDefault(); });
  addEventListener("pageshow", count); // a browser keeps the choice when it goes back
}
