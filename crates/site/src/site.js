document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const show = () => {
    const other = theme.current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  button.addEventListener("click", () => { theme.toggle(); show(); });
  prefersDark.addEventListener("change", show);
  button.hidden = false;
  show();
  // A column on a wide screen, a list to open on a narrow one.
  const narrow = matchMedia("(max-width: 820px)");
  const pages = document.getElementById("pages");
  const fit = () => { pages.open = !narrow.matches; };
  narrow.addEventListener("change", fit);
  fit();
});
