// SPDX-License-Identifier: Apache-2.0
// The canvas with its camera: panning, zooming, changes that glide, the minimap. Draws only when something changed.
import { Drawing, leastScale, type Camera, type Marks } from "./canvas";
import type { Painter } from "./paint";
import type { Box, Scene } from "./scene";

const glide = 220;  // milliseconds of a change
const minScale = 0.01, maxScale = 4;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Viewport {
  camera: Camera = { x: 0, y: 0, scale: 1 };
  marks: Marks = { selected: -1, hits: null, hitBoxes: new Map(), current: -1 };
  moved: () => void = () => {};
  clicked: (node: number) => void = () => {};
  doubleClicked: (node: number) => void = () => {};
  hovered: (node: number) => void = () => {};  // the pointer came to another box
  frames = 0;  // drawn so far
  private drawing: Drawing;
  private before = new Map<number, Box>();
  private changed = -Infinity;  // when the scene changed
  private flight: { from: Camera; to: Camera; start: number } | null = null;
  private pending = false;
  private mapImage: HTMLCanvasElement | null = null;

  constructor(readonly canvas: HTMLCanvasElement, readonly minimap: HTMLCanvasElement, private scene: Scene, private painter: Painter) {
    this.drawing = new Drawing(scene, painter);
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
    this.resize();
  }

  use(scene: Scene, painter: Painter) {
    this.scene = scene;
    this.painter = painter;
    this.drawing = new Drawing(scene, painter);
    this.before = new Map();
  }

  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  private resize() {
    const ratio = devicePixelRatio;
    for (const canvas of [this.canvas, this.minimap]) {
      const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
    }
    this.mapImage = null;
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => { this.pending = false; this.frame(now); });
  }
  // After colors or highlights changed.
  repaint() { this.mapImage = null; this.redraw(); }

  // The scene got new boxes: they glide from where they were. `anchor` stays where it is on the screen.
  sceneChanged(before: Map<number, Box>, anchor: number) {
    this.before = calm.matches ? new Map() : before;
    this.changed = calm.matches || !before.size ? -Infinity : performance.now();
    const old = before.get(anchor), now = this.scene.boxes.get(anchor);
    if (old && now) this.camera = { ...this.camera, x: this.camera.x + now.x - old.x, y: this.camera.y + now.y - old.y };
    if (old && now) for (const [node, box] of before) this.before.set(node, { ...box, x: box.x + now.x - old.x, y: box.y + now.y - old.y });
    this.flight = null;
    this.mapImage = null;
    this.redraw();
  }

  private frame(now: number) {
    const part = Math.min(1, (now - this.changed) / glide);
    const eased = 1 - (1 - part) ** 3;
    if (this.flight) {
      const f = Math.min(1, (now - this.flight.start) / glide), e = 1 - (1 - f) ** 3;
      const { from, to } = this.flight;
      this.camera = { x: from.x + (to.x - from.x) * e, y: from.y + (to.y - from.y) * e, scale: from.scale + (to.scale - from.scale) * e };
      if (f >= 1) { this.flight = null; this.moved(); }
    }
    const at = part >= 1 ? (box: Box) => box : (box: Box): Box => {
      // A new box comes out of the group that it was in.
      let old = this.before.get(box.node);
      for (let node = this.scene.graph.parent[box.node]; !old && node >= 0; node = this.scene.graph.parent[node]) old = this.before.get(node);
      if (!old) return box;
      const mix = (a: number, b: number) => a + (b - a) * eased;
      return { ...box, x: mix(old.x, box.x), y: mix(old.y, box.y), width: mix(old.width, box.width), height: mix(old.height, box.height) };
    };
    if (!this.width || !this.height) return;  // not shown; showing it resizes it
    const context = this.canvas.getContext("2d")!;
    this.drawing.draw(context, this.width, this.height, devicePixelRatio, this.camera, this.marks, at, part >= 1 ? 1 : eased * eased);
    this.drawMap();
    ++this.frames;
    if (part < 1 || this.flight) this.redraw();
  }

  private mapScale() { return Math.min(this.minimap.clientWidth / this.scene.size.width, this.minimap.clientHeight / this.scene.size.height); }
  private drawMap() {
    if (!this.minimap.width || !this.minimap.height) return;
    const c = this.minimap.getContext("2d")!;
    const ratio = devicePixelRatio;
    const scale = this.mapScale();
    if (!this.mapImage) {
      this.mapImage = document.createElement("canvas");
      this.mapImage.width = this.minimap.width;
      this.mapImage.height = this.minimap.height;
      const image = this.mapImage.getContext("2d")!;
      image.scale(ratio, ratio);
      image.fillStyle = this.painter.variable("card");
      image.fillRect(0, 0, this.minimap.clientWidth, this.minimap.clientHeight);
      for (const box of this.scene.boxes.values()) {
        if (box.open) {
          image.strokeStyle = this.painter.variable("line");
          image.strokeRect(box.x * scale, box.y * scale, box.width * scale, box.height * scale);
          continue;
        }
        const paint = this.painter.paintOf(box.node);
        image.fillStyle = this.marks.hits && this.marks.hitBoxes.get(box.node) ? this.painter.variable("bad") : paint.bar?.length ? paint.bar.reduce((a, b) => (b[1] > a[1] ? b : a))[0] : paint.fill;
        image.fillRect(box.x * scale, box.y * scale, Math.max(1, box.width * scale), Math.max(1, box.height * scale));
      }
    }
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.mapImage, 0, 0);
    c.scale(ratio, ratio);
    c.strokeStyle = this.painter.variable("accent");
    c.lineWidth = 2;
    c.strokeRect(this.camera.x * scale, this.camera.y * scale, (this.width / this.camera.scale) * scale, (this.height / this.camera.scale) * scale);
  }

  // Moves the camera, at once or gliding.
  go(to: Camera, glides: boolean) {
    if (!glides || calm.matches) {
      this.camera = to;
      this.flight = null;
      this.moved();
    } else {
      this.flight = { from: this.camera, to, start: performance.now() };
    }
    this.redraw();
  }

  // Can all texts be read when the whole graph is in view?
  wholeIsReadable(): boolean {
    const { width, height } = this.scene.size;
    return Math.min((this.width - 40) / width, (this.height - 40) / height) >= leastScale(this.scene);
  }
  // Shows the whole graph, or as much of it from the top as can be read.
  open() {
    if (this.wholeIsReadable()) { this.fit(this.scene.graph.root, false); return; }
    const { width, height } = this.scene.size;
    const scale = leastScale(this.scene);
    const fits = height <= (this.height - 40) / scale;
    this.go({ scale, x: width / 2 - this.width / 2 / scale, y: fits ? height / 2 - this.height / 2 / scale : -20 / scale }, false);
  }

  fit(node: number, glides = true) {
    const box = this.scene.boxes.get(node) ?? this.scene.boxes.get(this.scene.graph.root)!;
    const scale = Math.max(minScale, Math.min(node === this.scene.graph.root ? 1.2 : 1.5, (this.width - 40) / box.width, (this.height - 40) / box.height));
    this.go({ scale, x: box.x + box.width / 2 - this.width / 2 / scale, y: box.y + box.height / 2 - this.height / 2 / scale }, glides);
  }
  // Brings a box to the middle, large enough to read.
  center(node: number, glides = true) {
    const box = this.scene.boxes.get(this.scene.shownAs(node));
    if (!box) return;
    const scale = Math.max(this.camera.scale, 0.8);
    this.go({ scale, x: box.x + box.width / 2 - this.width / 2 / scale, y: box.y + Math.min(box.height, this.height / scale) / 2 - this.height / 2 / scale }, glides);
  }
  // Moves the camera only if the box is out of view.
  ensureSeen(node: number) {
    const box = this.scene.boxes.get(node);
    if (!box) return;
    const { x, y, scale } = this.camera;
    if (box.x < x || box.y < y || box.x + Math.min(box.width, 100) > x + this.width / scale || box.y + Math.min(box.height, 60) > y + this.height / scale) this.center(node);
  }

  zoom(factor: number, x = this.width / 2, y = this.height / 2) {
    const scale = Math.max(minScale, Math.min(maxScale, this.camera.scale * factor));
    this.go({ scale, x: this.camera.x + x / this.camera.scale - x / scale, y: this.camera.y + y / this.camera.scale - y / scale }, false);
  }
  pan(dx: number, dy: number) {
    this.go({ ...this.camera, x: this.camera.x + dx / this.camera.scale, y: this.camera.y + dy / this.camera.scale }, false);
  }

  // Returns closed groups in view, those nearest to its middle first.
  closedGroups(limit: number): number[] {
    const { x, y, scale } = this.flight?.to ?? this.camera;
    const right = x + this.width / scale, bottom = y + this.height / scale;
    const distance = (b: Box) => Math.hypot(b.x + b.width / 2 - (x + right) / 2, b.y + b.height / 2 - (y + bottom) / 2);
    return [...this.scene.boxes.values()]
      .filter((b) => !b.open && this.scene.graph.hasChildren(b.node) && b.x < right && b.x + b.width > x && b.y < bottom && b.y + b.height > y)
      .sort((a, b) => distance(a) - distance(b)).slice(0, limit).map((b) => b.node);
  }

  nodeAt(event: MouseEvent): number {
    const bounds = this.canvas.getBoundingClientRect();
    return this.scene.boxAt(this.camera.x + (event.clientX - bounds.left) / this.camera.scale, this.camera.y + (event.clientY - bounds.top) / this.camera.scale);
  }

  private listen() {
    const canvas = this.canvas;
    const pointers = new Map<number, PointerEvent>();
    let travelled = 0, under = -1;
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      canvas.setPointerCapture(event.pointerId);
      travelled = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) {
        const node = this.nodeAt(event);
        if (node !== under) this.hovered(under = node);
        return;
      }
      if (pointers.size === 2) {
        const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId)!;
        const bounds = canvas.getBoundingClientRect();
        const distance = (p: PointerEvent) => Math.max(1, Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY));
        this.zoom(distance(event) / distance(last), (event.clientX + other.clientX) / 2 - bounds.left, (event.clientY + other.clientY) / 2 - bounds.top);
      } else {
        this.pan(last.clientX - event.clientX, last.clientY - event.clientY);
      }
      travelled += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      pointers.set(event.pointerId, event);
    });
    const release = (event: PointerEvent) => pointers.delete(event.pointerId);
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("click", (event) => { if (travelled < 6) this.clicked(this.nodeAt(event)); });
    canvas.addEventListener("dblclick", (event) => this.doubleClicked(this.nodeAt(event)));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const bounds = canvas.getBoundingClientRect();
      const lines = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey) this.pan(event.deltaY * lines, 0);
      else this.zoom(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 100 : 400)), event.clientX - bounds.left, event.clientY - bounds.top);
    }, { passive: false });
    const jump = (event: PointerEvent) => {
      if (!(event.buttons & 1)) return;
      const bounds = this.minimap.getBoundingClientRect();
      const scale = this.mapScale();
      this.go({ ...this.camera, x: (event.clientX - bounds.left) / scale - this.width / 2 / this.camera.scale, y: (event.clientY - bounds.top) / scale - this.height / 2 / this.camera.scale }, false);
    };
    this.minimap.addEventListener("pointerdown", (event) => { this.minimap.setPointerCapture(event.pointerId); jump(event); });
    this.minimap.addEventListener("pointermove", jump);
  }
}
