/*! diff 9.0.0 (https://github.com/kpdecker/jsdiff), written by tests/support/write_page_library.py

BSD 3-Clause License

Copyright (c) 2009-2015, Kevin Decker <kpdecker@gmail.com>
All rights reserved.

Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this
   list of conditions and the following disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice,
   this list of conditions and the following disclaimer in the documentation
   and/or other materials provided with the distribution.

3. Neither the name of the copyright holder nor the names of its
   contributors may be used to endorse or promote products derived from
   this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE
FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER
CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY,
OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
*/
var Diff=(()=>{var E=Object.defineProperty;var M=Object.getOwnPropertyDescriptor;var S=Object.getOwnPropertyNames;var O=Object.prototype.hasOwnProperty;var W=(l,e)=>{for(var o in e)E(l,o,{get:e[o],enumerable:!0})},z=(l,e,o,t)=>{if(e&&typeof e=="object"||typeof e=="function")for(let n of S(e))!O.call(l,n)&&n!==o&&E(l,n,{get:()=>e[n],enumerable:!(t=M(e,n))||t.enumerable});return l};var _=l=>z(E({},"__esModule",{value:!0}),l);var R={};W(R,{diffArrays:()=>y});var v=class{diff(e,o,t={}){let n;typeof t=="function"?(n=t,t={}):"callback"in t&&(n=t.callback);let m=this.castInput(e,t),a=this.castInput(o,t),d=this.removeEmpty(this.tokenize(m,t)),s=this.removeEmpty(this.tokenize(a,t));return this.diffWithOptionsObj(d,s,t,n)}diffWithOptionsObj(e,o,t,n){var m;let a=i=>{if(i=this.postProcess(i,t),n){setTimeout(function(){n(i)},0);return}else return i},d=o.length,s=e.length,f=1,r=d+s;t.maxEditLength!=null&&(r=Math.min(r,t.maxEditLength));let p=(m=t.timeout)!==null&&m!==void 0?m:1/0,P=Date.now()+p,c=[{oldPos:-1,lastComponent:void 0}],u=this.extractCommon(c[0],o,e,0,t);if(c[0].oldPos+1>=s&&u+1>=d)return a(this.buildValues(c[0].lastComponent,o,e));let x=-1/0,L=1/0,j=()=>{for(let i=Math.max(x,-f);i<=Math.min(L,f);i+=2){let h,C=c[i-1],g=c[i+1];C&&(c[i-1]=void 0);let D=!1;if(g){let A=g.oldPos-i;D=g&&0<=A&&A<d}let T=C&&C.oldPos+1<s;if(!D&&!T){c[i]=void 0;continue}if(!T||D&&C.oldPos<g.oldPos?h=this.addToPath(g,!0,!1,0,t):h=this.addToPath(C,!1,!0,1,t),u=this.extractCommon(h,o,e,i,t),h.oldPos+1>=s&&u+1>=d)return a(this.buildValues(h.lastComponent,o,e))||!0;c[i]=h,h.oldPos+1>=s&&(L=Math.min(L,i-1)),u+1>=d&&(x=Math.max(x,i+1))}f++};if(n)(function i(){setTimeout(function(){if(f>r||Date.now()>P)return n(void 0);j()||i()},0)})();else for(;f<=r&&Date.now()<=P;){let i=j();if(i)return i}}addToPath(e,o,t,n,m){let a=e.lastComponent;return a&&!m.oneChangePerToken&&a.added===o&&a.removed===t?{oldPos:e.oldPos+n,lastComponent:{count:a.count+1,added:o,removed:t,previousComponent:a.previousComponent}}:{oldPos:e.oldPos+n,lastComponent:{count:1,added:o,removed:t,previousComponent:a}}}extractCommon(e,o,t,n,m){let a=o.length,d=t.length,s=e.oldPos,f=s-n,r=0;for(;f+1<a&&s+1<d&&this.equals(t[s+1],o[f+1],m);)f++,s++,r++,m.oneChangePerToken&&(e.lastComponent={count:1,previousComponent:e.lastComponent,added:!1,removed:!1});return r&&!m.oneChangePerToken&&(e.lastComponent={count:r,previousComponent:e.lastComponent,added:!1,removed:!1}),e.oldPos=s,f}equals(e,o,t){return t.comparator?t.comparator(e,o):e===o||!!t.ignoreCase&&e.toLowerCase()===o.toLowerCase()}removeEmpty(e){let o=[];for(let t=0;t<e.length;t++)e[t]&&o.push(e[t]);return o}castInput(e,o){return e}tokenize(e,o){return Array.from(e)}join(e){return e.join("")}postProcess(e,o){return e}get useLongestToken(){return!1}buildValues(e,o,t){let n=[],m;for(;e;)n.push(e),m=e.previousComponent,delete e.previousComponent,e=m;n.reverse();let a=n.length,d=0,s=0,f=0;for(;d<a;d++){let r=n[d];if(r.removed)r.value=this.join(t.slice(f,f+r.count)),f+=r.count;else{if(!r.added&&this.useLongestToken){let p=o.slice(s,s+r.count);p=p.map(function(P,c){let u=t[f+c];return u.length>P.length?u:P}),r.value=this.join(p)}else r.value=this.join(o.slice(s,s+r.count));s+=r.count,r.added||(f+=r.count)}}return n}};var w=class extends v{tokenize(e){return e.slice()}join(e){return e}removeEmpty(e){return e}},I=new w;function y(l,e,o){return I.diff(l,e,o)}return _(R);})();
