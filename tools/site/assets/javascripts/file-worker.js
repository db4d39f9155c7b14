// Search runs in a worker, and a browser starts none for a page that was opened from the disk. There
// this does the same in a hidden frame, which the page may reach. On a server it does nothing.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.onmessage = null
      this.onerror = null
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      // Copies, as between a page and a worker: neither may change what the other holds.
      inside.postMessage = (given) => {
        const data = structuredClone(given)
        setTimeout(() => this.onmessage?.({ data }))
      }
      this.send = (data) => inside.onmessage?.({ data })
      const script = inside.document.createElement("script")
      script.onload = () => {
        for (const data of this.waiting) this.send(data)
        this.waiting = null
      }
      script.onerror = (event) => this.onerror?.(event)
      script.src = new URL(url, document.baseURI).href
      inside.document.head.append(script)
    }
    postMessage(given) {
      const data = structuredClone(given)
      if (this.waiting) this.waiting.push(data)
      else setTimeout(() => this.send(data))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
