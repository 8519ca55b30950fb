"use strict";
// Asks for the page again and exchanges what has changed, so that nothing flickers; the report that takes the page's place
// at the end is loaded as it is.
(() => {
  const again = async () => {
    const gone = document.getElementById("gone");
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const came = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!came.body.dataset.live) {
        location.reload();
        return;
      }
      gone.hidden = true;
      document.title = came.title;
      exchange(document.getElementById("live"), came.getElementById("live"));
    } catch {
      gone.hidden = false;
    }
    setTimeout(again, 2000);
  };

  // Part by part, so that a table that is scrolled or has the focus stays as it is unless it changes.
  const exchange = (before, after) => {
    const old = [...before.children];
    const fresh = [...after.children];
    if (old.length !== fresh.length || old.some((part, index) => part.tagName !== fresh[index].tagName)) {
      before.replaceChildren(...fresh);
      return;
    }
    fresh.forEach((part, index) => {
      if (part.outerHTML !== old[index].outerHTML) swap(old[index], part);
    });
  };

  const swap = (old, fresh) => {
    const places = [...old.querySelectorAll(".scroll")].map((each) => [each.scrollTop, each.scrollLeft]);
    const held = [...old.querySelectorAll(".scroll")].indexOf(document.activeElement);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((each, index) => {
      [each.scrollTop, each.scrollLeft] = places[index] ?? [0, 0];
      if (index === held) each.focus({ preventScroll: true });
    });
  };
  setTimeout(again, 2000);
})();
