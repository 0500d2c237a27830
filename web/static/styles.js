// Sizes that are known here alone: in a style sheet of the page's own, so that no element carries a style.

const sheet = new CSSStyleSheet(), rules = new Map();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

export function size(selector, property, value) {
  let rule = rules.get(selector);
  if (!rule) {
    rule = sheet.cssRules[sheet.insertRule(`${selector} {}`, sheet.cssRules.length)];
    rules.set(selector, rule);
  }
  if (rule.style.getPropertyValue(property) !== value) rule.style.setProperty(property, value);
}
